/**
 * Who waits for whom, so that a thousand jobs remain readable: jobs that wait for the same pools and hold the same ones
 * are one pile until it is opened. Nothing is lost by that: all jobs of a pile have the same edges. Pure.
 */

import type { Schemas } from "../../api/client";

type View = Schemas["GraphView"];

/** A job of the graph: the pools that it waits for, and those of which it holds some. */
export interface Job {
  id: string;
  name: string;
  owner: string;
  waits: string[];
  holds: string[];
}

/** A pool of the graph. `label` is what the service says of it. */
export interface Pool {
  id: string;
  label: string;
  waiting: Job[];
  holders: Job[];
}

/** Jobs with the same edges. */
export interface Pile {
  id: string;
  jobs: [Job, ...Job[]];
}

export interface Waits {
  jobs: Map<string, Job>;
  pools: Map<string, Pool>;
}

export interface Filters {
  owner?: string | undefined;
  name?: string | undefined;
  pool?: string | undefined;
}

/** The jobs and pools of a graph, each with what it is connected with. */
export function waitsOf({ nodes, edges }: View): Waits {
  const jobs = new Map<string, Job>();
  const pools = new Map<string, Pool>();
  for (const { id, kind, label, job_name, job_owner } of nodes)
    if (kind === "pool") pools.set(id, { id, label, waiting: [], holders: [] });
    else jobs.set(id, { id, name: job_name ?? "", owner: job_owner ?? "", waits: [], holds: [] });
  for (const { from, to, kind } of edges) {
    const [job, pool] = kind === "waits" ? [jobs.get(from), pools.get(to)] : [jobs.get(to), pools.get(from)];
    if (!job || !pool) continue;
    (kind === "waits" ? job.waits : job.holds).push(pool.id);
    (kind === "waits" ? pool.waiting : pool.holders).push(job);
  }
  for (const job of jobs.values()) [job.waits, job.holds] = [job.waits.sort(), job.holds.sort()];
  return { jobs, pools };
}

/** Whether a job fits the filters. Names and owners are looked for in any part of them. */
export function fits(job: Job, { owner, name, pool }: Filters): boolean {
  const has = (text: string, part: string | undefined) => !part || text.toLowerCase().includes(part.toLowerCase());
  return has(job.owner, owner) && has(job.name || job.id, name) && (!pool || job.waits.includes(pool) || job.holds.includes(pool));
}

/** The jobs that fit, and those that they wait for, and those that these wait for, and so on. */
export function chosenOf({ jobs, pools }: Waits, filters: Filters): Job[] {
  const kept = new Set([...jobs.values()].filter((job) => fits(job, filters)));
  for (const job of kept) // a set that grows is walked to its end
    for (const pool of job.waits) for (const holder of pools.get(pool)?.holders ?? []) kept.add(holder);
  return [...kept];
}

/** Jobs by what they wait for and hold, in the order of the graph. */
export function pilesOf(jobs: readonly Job[]): Pile[] {
  const piles = new Map<string, Pile>();
  for (const job of jobs) {
    const id = `pile ${job.waits.join(" ")} | ${job.holds.join(" ")}`;
    const pile = piles.get(id);
    if (pile) pile.jobs.push(job);
    else piles.set(id, { id, jobs: [job] });
  }
  return [...piles.values()];
}

/** What a job, or each job of a pile, does: waits for resource/bench and holds target/linux. */
export function deedsOf({ waits, holds }: Job, isOne = true): string {
  const parts = [
    waits.length > 0 && `${isOne ? "waits" : "wait"} for ${listed(waits)}`,
    holds.length > 0 && `${isOne ? "holds" : "hold"} ${listed(holds)}`,
  ];
  return parts.filter(Boolean).join(" and ");
}

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
