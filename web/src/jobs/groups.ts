/** Jobs of a list that belong together: those of a set. Pure. */

import type { Schemas } from "../api/client";

export type Job = Schemas["JobView"];

/** The tag that the jobs of a set have. */
export const SET = "set";

export interface JobGroup {
  key: string;
  /** The set's id; undefined for jobs of no set. */
  set: string | undefined;
  owner: string;
  jobs: Job[];
}

/** Jobs in their order; those of a set stand together, where its first one stands. Jobs of no set that follow each other are one group. */
export function groupsOf(jobs: readonly Job[]): JobGroup[] {
  const groups: JobGroup[] = [];
  const sets = new Map<string, JobGroup>();
  for (const job of jobs) {
    const set = job.tags[SET];
    const key = set ? `${job.owner} ${set}` : "";
    const last = groups.at(-1);
    const known = set ? sets.get(key) : last?.set === undefined ? last : undefined;
    if (known) known.jobs.push(job);
    else {
      const group = { key: key || job.id, set, owner: job.owner, jobs: [job] };
      groups.push(group);
      if (set) sets.set(key, group);
    }
  }
  return groups;
}

/** How many jobs have each state or outcome: those first that need somebody. */
export function countsOf(jobs: readonly Pick<Job, "state" | "outcome">[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { state, outcome } of jobs) counts.set(outcome ?? state, (counts.get(outcome ?? state) ?? 0) + 1);
  return [...counts].sort(([one], [other]) => ORDER.indexOf(one) - ORDER.indexOf(other));
}

const ORDER = ["failed", "errored", "running", "acquiring", "queued", "waiting", "cancelled", "succeeded"];
