/**
 * What of a set is to be run again: what did not succeed, and what depends on it, in the order in which it is submitted. Pure.
 *
 * A retry waits for the same jobs as before, unless it is given others. So a job that depends on one that is run again
 * waits for the new one; and where somebody has run that again already, for the newest one.
 */

import type { Schemas } from "../api/client";
import { command } from "../parts/command";
import { current, type JobSet, type Member } from "./members";

type Dependency = Schemas["JobDependency"];

/** How a job must end for one that depends on it to begin. */
const WANTED: Record<Dependency["on"], readonly string[]> = {
  success: ["succeeded"],
  failure: ["failed", "errored"],
  always: ["succeeded", "failed", "cancelled", "errored"],
};

/** A job that takes the place of one that was depended on: itself, or the retry of `job` that is about to be made. */
export interface Instead {
  /** The dependency's name. */
  name: string;
  job: string;
  isNew: boolean;
}

export interface Step {
  member: Member;
  instead: Instead[];
}

export interface Rerun {
  /** Jobs that did not succeed, though all that they depend on is as they need it. */
  now: Member[];
  /** Those, and the jobs that depend on them; each after those that it depends on. */
  steps: Step[];
  /** Jobs that depend on one that did not end as they need and is not run again, with the names of these. */
  blocked: { member: Member; after: string[] }[];
}

/** What a retry waits for in the place of a dependency: the same, another job, or nothing that could help. */
type Way = { is: "same" } | { is: "other"; instead: Instead } | { is: "unmet"; name: string };

/** What is to be run again of the jobs that have settled. */
export function rerunOf(set: JobSet): Rerun {
  const found: Rerun = { now: [], steps: [], blocked: [] };
  const again = new Set<string>();
  const newest = newestOf(set);
  for (const member of current(set)) {
    if (member.state !== "settled") continue;
    const ways = member.dependencies.map((each) => wayOf(set, { each, of: member, newest, again }));
    const instead = ways.flatMap((way) => (way.is === "other" ? [way.instead] : []));
    const isGood = member.outcome === "succeeded";
    if (isGood && !instead.some(({ isNew }) => isNew)) continue;
    const after = ways.flatMap((way) => (way.is === "unmet" ? [way.name] : []));
    if (after.length > 0) {
      found.blocked.push({ member, after });
      continue;
    }
    again.add(member.id);
    found.steps.push({ member, instead });
    if (instead.length === 0) found.now.push(member);
  }
  return found;
}

interface Asked {
  each: Dependency;
  of: Member;
  newest: (job: string) => string;
  /** Ids of jobs that are run again. */
  again: ReadonlySet<string>;
}

function wayOf(set: JobSet, { each, of, newest, again }: Asked): Way {
  const wasMet = isMet(set, each, of);
  if (each.on === "failure" && wasMet) return { is: "same" }; // its retry may succeed
  const job = newest(each.job);
  if (again.has(job)) return { is: "other", instead: { name: each.name, job, isNew: true } };
  if (job !== each.job && mayMeet(set.byId.get(job), each)) return { is: "other", instead: { name: each.name, job, isNew: false } };
  const was = set.byId.get(each.job);
  const isOpen = was !== undefined && was.state !== "settled";
  return wasMet || isOpen ? { is: "same" } : { is: "unmet", name: was?.name ?? each.job };
}

/** Whether a job ended as another needs it. Of a job that is not of the set only this is known: who became ready had it. */
function isMet({ byId }: JobSet, { job, on }: Dependency, of: Member): boolean {
  const found = byId.get(job);
  if (!found) return of.times.ready !== null;
  return found.state === "settled" && WANTED[on].includes(found.outcome ?? "");
}

/** Whether a job ended as needed, or has not ended. */
const mayMeet = (job: Member | undefined, { on }: Dependency): boolean =>
  job !== undefined && (job.state !== "settled" || WANTED[on].includes(job.outcome ?? ""));

/**
 * The newest job that stands in the place of one: of the same name, and submitted once that had settled. Jobs of one name
 * that were submitted together are different jobs.
 */
function newestOf({ members, byId }: JobSet): (job: string) => string {
  const named = new Map<string, Member[]>();
  for (const each of members) named.set(each.name, [...(named.get(each.name) ?? []), each]);
  return (job) => {
    const was = byId.get(job);
    const settled = was?.times.settled;
    if (!was || !settled) return job;
    return named.get(was.name)?.findLast((each) => each.id > job && each.times.submitted >= settled)?.id ?? job;
  };
}

/** The steps as commands of a shell. */
export function commandsOf(steps: readonly Step[]): string {
  const wanted = new Set(steps.flatMap(({ instead }) => instead.flatMap(({ job, isNew }) => (isNew ? [job] : []))));
  const names = new Map([...wanted].map((job, index) => [job, `job${index + 1}`]));
  return steps
    .map(({ member, instead }) => {
      const after = instead.map(
        ({ name, job, isNew }) => `--after ${isNew ? `${command(`${name}=`)}"$${names.get(job)}"` : command(`${name}=${job}`)}`,
      );
      const line = [command("penstock", "job", "retry", member.id), ...after].join(" ");
      const variable = names.get(member.id);
      return variable ? `${variable}=$(${line})` : line;
    })
    .join("\n");
}
