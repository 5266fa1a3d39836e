/** What needs a person, counted. Nothing is judged that the service does not say. */

import type { Schemas } from "../api/client";
import { HOUR, type CoolDown, type Maker, type Unit } from "./watch";

export type Tone = "bad" | "wait" | "good" | "off";

/** A part of the page: how many there are that need somebody, in words. */
export interface Finding {
  id: string;
  title: string;
  /** Undefined until it is known. */
  count: number | undefined;
  /** The tone if there are any. */
  tone: "bad" | "wait";
}

/** How a finding reads at a glance: a sign, and a tone. */
export function glance({ count, tone }: Finding): [string, Tone] {
  if (count === undefined) return ["…", "off"];
  if (count === 0) return ["✓", "good"];
  return tone === "bad" ? ["!", "bad"] : ["‖", "wait"];
}

export const quarantined = (units: readonly Unit[]): Unit[] => units.filter((each) => each.quarantine);

/** Held units, the hold that ends first before the others. */
export const held = (units: readonly Unit[]): Unit[] =>
  units.filter((each) => each.hold).toSorted((one, other) => until(one).localeCompare(until(other)));

const until = (unit: Unit): string => unit.hold?.until ?? "";

export const endsSoon = (unit: Unit, now: number): boolean => !!unit.hold && Date.parse(unit.hold.until) - now < HOUR;

/** Units that have waited for an hour to be destroyed, as for the alarm NotPutBack. */
export const notPutBack = (units: readonly Unit[], now: number): Unit[] =>
  units.filter((each) => each.state === "dirty" && !each.hold && now - Date.parse(each.since) > HOUR);

/** Cool-downs for some causes, with whose they are. */
export function cooling(makers: readonly Maker[], causes: readonly CoolDown["cause"][]): (CoolDown & { maker: Maker })[] {
  return makers.flatMap((maker) =>
    maker.cooling.filter((each) => causes.includes(each.cause)).map((each) => ({ ...each, maker })),
  );
}

export const WRONG: readonly CoolDown["cause"][] = ["misconfigured", "broken"];
export const SHORT: readonly CoolDown["cause"][] = ["capacity", "quota", "rate"];

/** Factories and wells that could not be listed the last time. */
export const unlisted = (makers: readonly Maker[]): Maker[] => makers.filter((each) => (each.compared?.failures ?? 0) > 0);

export function leaks(makers: readonly Maker[]): { strays: number; missing: number } {
  const sum = (of: "strays" | "missing") => makers.reduce((all, each) => all + (each.compared?.[of].length ?? 0), 0);
  return { strays: sum("strays"), missing: sum("missing") };
}

/** Whether a canary's last result was a failure, or it could not be sent or run: as the alarm CanaryFailing has it. */
export const isFailing = (canary: Schemas["CanaryView"]): boolean =>
  canary.failures > 0 || canary.outcome === "errored" || canary.outcome === "refused";

/** Deliveries that GitHub had to be asked for again, or that led to nothing yet. */
export const notable = (rows: readonly Schemas["DeliveryView"][]): Schemas["DeliveryView"][] =>
  rows.filter((each) => each.missed || each.outcome === null);
