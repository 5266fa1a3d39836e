/** The longest path of a set: the chain of jobs, each after the one before, that took the longest. Pure. */

import { current, ran, waited, type JobSet, type Member } from "./members";

export interface LongestPath {
  /** The jobs, the first one first. */
  members: Member[];
  /** Seconds for which they waited for pools and machines, with all that they depend on there. */
  waited: number;
  /** Seconds for which their scripts ran. */
  ran: number;
}

/** Among jobs that count. A job's length is from when it had all that it depends on until it settled, or until now. */
export function longestPath(set: JobSet, now: number): LongestPath {
  const lengths = new Map<string, number>();
  const before = new Map<string, string>();
  let last: string | undefined;
  for (const member of current(set)) {
    const start = member.dependencies.reduce<string | undefined>((best, { job }) => longer(lengths, best, job), undefined);
    lengths.set(member.id, (start ? (lengths.get(start) ?? 0) : 0) + waited(member, now) + ran(member, now));
    if (start) before.set(member.id, start);
    last = longer(lengths, last, member.id);
  }
  const members: Member[] = [];
  for (let id = last; id; id = before.get(id)) members.unshift(set.byId.get(id) as Member);
  return { members, waited: sum(members, waited, now), ran: sum(members, ran, now) };
}

/** Jobs come after those that they depend on, so the lengths of these are known. */
function longer(lengths: ReadonlyMap<string, number>, best: string | undefined, other: string): string | undefined {
  const length = lengths.get(other);
  if (length === undefined) return best; // of another set, or one that was repeated
  return best === undefined || length > (lengths.get(best) ?? 0) ? other : best;
}

const sum = (members: readonly Member[], of: (member: Member, now: number) => number, now: number): number =>
  members.reduce((total, each) => total + of(each, now), 0);
