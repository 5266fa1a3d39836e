/** What a job was granted, and what became of it: from its log's decisions and its units' journals. */

import { useEffect, useState } from "preact/hooks";

import { api, ask, Refused, type Schemas } from "../api/client";
import { type Grant, grants, type Lease, lease } from "./stages";

type Job = Schemas["JobView"];
type Unit = Schemas["WorkerView"] | Schemas["ResourceView"];

export interface Units {
  /** The first and the last lines of the log. */
  lines: Schemas["EventView"][];
  grants: Grant[];
  leases: Lease[];
  /** The units that can still be read. */
  views: Unit[];
  /** The fences of what is still held, by unit. */
  fences: ReadonlyMap<string, number>;
}

export const NO_UNITS: Units = { lines: [], grants: [], leases: [], views: [], fences: new Map() };

/** How many lines are read at each end of the log: the decisions about an attempt stand there. */
const LINES = 100;
const MOST_UNITS = 20;
/** When to look again whether all that was held is clean, in seconds after the job has settled. */
const LOOKS = [3, 10, 30, 60];

/** What is known of a job's units. It is read when the job's state changes, and until all is clean. */
export function useUnits(job: Job): Units {
  const [found, setFound] = useState<Units>(NO_UNITS);
  const key = [job.id, job.state, job.attempt, job.worker, ...job.resources.map((each) => each.state)].join(" ");
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (count: number) => {
      const now = await read(job, abort.signal).catch(unlessAborted);
      if (!now) return;
      setFound(now);
      const isClean = now.leases.every((each) => each.cleaned);
      const wait = LOOKS[count];
      if (job.state === "settled" && !isClean && wait !== undefined && !document.hidden) {
        timer = setTimeout(() => void look(count + 1), wait * 1000);
      }
    };
    void look(0);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return found;
}

/** A log that is gone, or a unit that is, is no fault: then nothing is shown of it. */
function unlessAborted(error: unknown): undefined {
  if (error instanceof Refused || (error instanceof DOMException && error.name === "AbortError")) return undefined;
  throw error;
}

async function read(job: Job, signal: AbortSignal): Promise<Units> {
  const path = { job: job.id };
  const page = (query: { last?: number; limit: number }) => ask(api.GET("/v1/jobs/{job}/events", { params: { path, query }, signal }));
  const first = await page({ limit: LINES });
  const last = first.items.length < LINES && job.attempt === 1 && job.state !== "settled" ? first : await page({ last: LINES, limit: LINES });
  const seen = first.items.at(-1)?.seq ?? 0;
  const lines = [...first.items, ...last.items.filter((each) => each.seq > seen)];
  const got = grants(lines);
  const journals = await Promise.all(got.slice(0, MOST_UNITS).map((each) => journal(each, job, signal)));
  const known = journals.filter((each) => each !== undefined);
  const leases = known.flatMap((each) => each.lease ?? []);
  const isHeld = (one: Grant) => leases.some((each) => each.unit === one.unit && !each.cleaned);
  const fences = await readFences(new Set(got.filter(isHeld).map((each) => each.pool)), job.id, signal);
  return { lines, grants: got, leases, views: known.map((each) => each.view), fences };
}

/** The fences of the slots that a job holds: a pool shows them while they are held. */
async function readFences(pools: ReadonlySet<string>, job: string, signal: AbortSignal): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const pool of pools) {
    const [sort = "", name = ""] = pool.split("/");
    const { slots } = await ask(api.GET("/v1/pools/{sort}/{name}", { params: { path: { sort, name } }, signal }));
    for (const each of slots ?? []) if (each.job === job && each.unit && each.fence) found.set(each.unit, each.fence);
  }
  return found;
}

async function journal({ unit, attempt }: Grant, job: Job, signal: AbortSignal) {
  const isResource = unit.startsWith("r-");
  try {
    const [view, events] = isResource
      ? await Promise.all([
          ask(api.GET("/v1/resources/{resource}", { params: { path: { resource: unit } }, signal })),
          ask(api.GET("/v1/resources/{resource}/events", { params: { path: { resource: unit } }, signal })),
        ])
      : await Promise.all([
          ask(api.GET("/v1/workers/{worker}", { params: { path: { worker: unit } }, signal })),
          ask(api.GET("/v1/workers/{worker}/events", { params: { path: { worker: unit } }, signal })),
        ]);
    return { view: view as Unit, lease: lease(unit, events.items, job.id, attempt) };
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}
