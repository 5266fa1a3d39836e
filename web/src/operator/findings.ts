/** What needs a person, counted. Nothing is judged that the service does not say. */

import { type AlarmsAndLetters, type Attention, HOUR, type Unit } from "./watch";
import type { Schemas } from "../api/client";

export type Tone = "bad" | "wait" | "good" | "off";

/** A part of the page: how many there are that need somebody, in words. */
export interface Finding {
  id: string;
  title: string;
  /** Undefined until it is known. */
  count: number | undefined;
  /** Why it cannot be known. */
  problem?: string | null | undefined;
  /** The tone if there are any. */
  tone: "bad" | "wait";
}

/** How a finding reads at a glance: a sign, and a tone. */
export function glance({ count, tone, problem }: Finding): [string, Tone] {
  if (problem) return ["?", "wait"];
  if (count === undefined) return ["…", "off"];
  if (count === 0) return ["✓", "good"];
  return tone === "bad" ? ["!", "bad"] : ["‖", "wait"];
}

export const endsSoon = (unit: Unit, now: number): boolean => !!unit.hold && Date.parse(unit.hold.until) - now < HOUR;

/** Whether a canary's last result was a failure, or it could not be sent or run: as the alarm CanaryFailing has it. */
export const isFailing = (canary: Schemas["CanaryView"]): boolean =>
  canary.failures > 0 || canary.outcome === "errored" || canary.outcome === "refused";

/** What was left over in the account; unknown while no comparison is finished, or one found none and lacks a list. */
function leftovers(of: Attention | undefined): Finding {
  const [found, part] = [of?.account, { id: "leftovers", title: "left over in the account", tone: "bad" } as const];
  if (of && !found?.finished) return { ...part, count: undefined, problem: "The account was not compared yet." };
  const problem = found?.unlisted && !found.left ? "Not all of the account could be listed." : undefined;
  return { ...part, count: found?.left, problem };
}

/** All parts of the page, counted; what is not known yet has no number. */
export function findings(of: Attention | undefined, watched: AlarmsAndLetters | undefined, now: number): Finding[] {
  const [alarms, letters] = [watched?.alarms, watched?.dead_letters];
  return [
    { id: "alarms", title: "alarms raised", tone: "bad", count: alarms?.count ?? undefined, problem: alarms?.problem },
    { id: "dead-letters", title: "dead letters", tone: "bad", count: letters?.count ?? undefined, problem: letters?.problem },
    { id: "quarantine", title: "in quarantine", tone: "bad", count: of?.quarantined.count },
    { id: "misconfigured", title: "misconfigured, or broken", tone: "bad", count: of?.misconfigured.count },
    { id: "leaks", title: "strays", tone: "bad", count: of?.compared.strays },
    { id: "leaks", title: "missing", tone: "bad", count: of?.compared.missing },
    { id: "unlisted", title: "not listed", tone: "bad", count: of?.compared.unlisted },
    leftovers(of),
    { id: "capacity", title: "without capacity", tone: "wait", count: of?.short.count },
    { id: "canaries", title: "canaries fail", tone: "bad", count: of?.canaries.count },
    {
      id: "holds",
      title: "holds end within an hour",
      tone: "wait",
      count: of?.held.items.filter((each) => endsSoon(each, now)).length,
    },
    { id: "not-put-back", title: "not put back", tone: "bad", count: of?.not_put_back.count },
    { id: "stops", title: "site or factories paused", tone: "wait", count: of?.stops.count },
    { id: "paused", title: "pools paused", tone: "wait", count: of?.paused.count },
    { id: "drift", title: "changed by hand", tone: "wait", count: of?.drift.count },
    { id: "deliveries", title: "deliveries missed or open", tone: "wait", count: of?.deliveries.count },
  ];
}
