/** Which units a list shows, by the filters in its address. Pure. */

import type { Unit } from "./kinds";

export type Filters = Readonly<Record<string, string>>;

/** What is not as usual with a unit; each is a choice of the list's filter "Only". */
export const ONLY = {
  held: (unit: Unit) => unit.hold !== null,
  broken: (unit: Unit) => unit.broken !== null,
  drained: (unit: Unit) => unit.drain !== null,
  quarantined: (unit: Unit) => unit.quarantine !== null,
} as const;

const isOnly = (text: string): text is keyof typeof ONLY => text in ONLY;

/** Whether a unit fits all filters: state, type, maker, job (its name, owner or id), and one of ONLY. */
export function fits(unit: Unit, { state, type, maker, job, only }: Filters): boolean {
  return (
    (!state || unit.state === state) &&
    (!type || unit.type === type) &&
    (!maker || unit.maker === maker) &&
    (!job || [unit.job, unit.job_name, unit.job_owner].some((text) => text?.toLowerCase().includes(job.toLowerCase()))) &&
    (!only || (isOnly(only) && ONLY[only](unit)))
  );
}

/** The values that some units have of something, sorted. */
export const valuesOf = (units: readonly Unit[], part: "type" | "maker"): string[] =>
  [...new Set(units.map((unit) => unit[part]))].sort();

/** The states of a unit, in the order of its life. */
export const STATES = ["creating", "ready", "cleaning", "idle", "dirty", "quarantined", "gone"] as const;
