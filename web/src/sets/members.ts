/** The jobs of a set, and how they depend on each other. Pure. */

import type { Schemas } from "../api/client";

/** A job of a set; `times` are RFC 3339. */
export type Member = Schemas["SetJobView"];

export interface JobSet {
  /** All jobs, in the order in which they were submitted. */
  members: Member[];
  byId: ReadonlyMap<string, Member>;
  /** The ids of jobs that wait, or waited, for a job. */
  after: ReadonlyMap<string, string[]>;
  /** Ids of jobs after which one of the same name was submitted. */
  repeated: ReadonlySet<string>;
}

/** Ids are ULIDs, so they are sorted by when the jobs were submitted. */
export function setOf(jobs: readonly Member[]): JobSet {
  const members = [...jobs].sort((one, other) => (one.id < other.id ? -1 : 1));
  const after = new Map<string, string[]>();
  const latest = new Map<string, string>();
  const repeated = new Set<string>();
  for (const { id, name, dependencies } of members) {
    for (const { job } of dependencies) after.set(job, [...(after.get(job) ?? []), id]);
    const before = latest.get(name);
    if (before) repeated.add(before);
    latest.set(name, id);
  }
  return { members, byId: new Map(members.map((each) => [each.id, each])), after, repeated };
}

/** The jobs that count: of several of one name, the one that was submitted last. */
export const current = ({ members, repeated }: JobSet): Member[] => members.filter(({ id }) => !repeated.has(id));

/** Seconds from when a job had all that it depends on until its script began, or until now; 0 before that. */
export function waited({ times }: Member, now: number): number {
  if (!times.ready) return 0;
  return seconds(times.ready, times.started ?? times.settled, now);
}

/** Seconds for which its script ran, or has run until now. */
export function ran({ times }: Member, now: number): number {
  return times.started ? seconds(times.started, times.settled, now) : 0;
}

function seconds(from: string, to: string | null | undefined, now: number): number {
  return Math.max(0, (to ? Date.parse(to) : now) - Date.parse(from)) / 1000;
}
