/** What became of a job's units, as their journals say; and the ends of its log, which say when its script ended. */

import { useEffect, useState } from "preact/hooks";

import { api, ask, Refused, type Schemas } from "../api/client";
import { type Lease, lease } from "./stages";

type Job = Schemas["JobView"];
type Held = Schemas["HeldView"];
type Unit = Schemas["WorkerView"] | Schemas["ResourceView"];

export interface Units {
  /** The first and the last lines of the log. */
  lines: Schemas["EventView"][];
  leases: Lease[];
  /** The units that can still be read. */
  views: Unit[];
}

export const NO_UNITS: Units = { lines: [], leases: [], views: [] };

/** How many lines are read at each end of the log: the decisions about an attempt stand there. */
const LINES = 100;
const MOST_UNITS = 20;

/** What is known of a job's units. It is read when the job gets further, and when something of it is clean. */
export function useUnits(job: Job, held: readonly Held[]): Units {
  const [found, setFound] = useState<Units>(NO_UNITS);
  const key = [job.id, job.state, ...held.map((each) => `${each.attempt} ${each.unit} ${each.clean?.time}`)].join(" ");
  useEffect(() => {
    const abort = new AbortController();
    const look = async () => {
      const now = await read(job, held, abort.signal).catch(unlessAborted);
      if (now) setFound(now);
    };
    void look();
    return () => abort.abort();
  }, [key]);
  return found;
}

/** A log that is gone, or a unit that is, is no fault: then nothing is shown of it. */
function unlessAborted(error: unknown): undefined {
  if (error instanceof Refused || (error instanceof DOMException && error.name === "AbortError")) return undefined;
  throw error;
}

async function read(job: Job, held: readonly Held[], signal: AbortSignal): Promise<Units> {
  const path = { job: job.id };
  const page = (query: { last?: number; limit: number }) => ask(api.GET("/v1/jobs/{job}/events", { params: { path, query }, signal }));
  const first = await page({ limit: LINES });
  const last = first.items.length < LINES && job.attempt === 1 && job.state !== "settled" ? first : await page({ last: LINES, limit: LINES });
  const seen = first.items.at(-1)?.seq ?? 0;
  const lines = [...first.items, ...last.items.filter((each) => each.seq > seen)];
  const journals = await Promise.all(held.slice(-MOST_UNITS).map((each) => journal(each, job, signal)));
  const known = journals.filter((each) => each !== undefined);
  return { lines, leases: known.flatMap((each) => each.lease ?? []), views: known.map((each) => each.view) };
}

async function journal({ unit, attempt }: Held, job: Job, signal: AbortSignal) {
  if (!unit) return undefined;
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
