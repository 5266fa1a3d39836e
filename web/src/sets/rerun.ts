/**
 * What of a set is to be run again: what did not succeed, and what depends on it. Pure.
 *
 * A retry waits for the same jobs as before. So a job can be retried if those ended as it needs; one that failed because
 * they did not would fail again.
 */

import type { Schemas } from "../api/client";
import { current, type JobSet, type Member } from "./members";

/** How a job must end for one that depends on it to begin. */
const WANTED: Record<Schemas["JobDependency"]["on"], readonly string[]> = {
  success: ["succeeded"],
  failure: ["failed", "errored"],
  always: ["succeeded", "failed", "cancelled", "errored"],
};

export interface Rerun {
  /** Jobs that a retry may help: all that they depend on is as they need it. */
  now: Member[];
  /** Jobs that depend on one that did not end as they need, with the names of these. */
  later: { member: Member; after: string[] }[];
}

/** What is to be run again of the jobs that have settled. */
export function rerunOf(set: JobSet): Rerun {
  const found: Rerun = { now: [], later: [] };
  for (const member of current(set)) {
    if (member.state !== "settled" || member.outcome === "succeeded") continue;
    const after = member.dependencies.filter((each) => !isMet(set, each, member)).map((each) => set.byId.get(each.job)?.name ?? each.job);
    if (after.length > 0) found.later.push({ member, after });
    else found.now.push(member);
  }
  return found;
}

/** Whether a job ended as another needs it. Of a job that is not of the set only this is known: who became ready had it. */
function isMet({ byId }: JobSet, { job, on }: Schemas["JobDependency"], of: Member): boolean {
  const found = byId.get(job);
  if (!found) return of.times.ready !== null;
  if (found.state !== "settled") return false;
  return WANTED[on].includes(found.outcome ?? "");
}
