/** A job's stages as the service tells them: from its times, from what it held, and from what its units' journals say. */

import type { Schemas } from "../api/client";

type Job = Schemas["JobView"];
type Timings = Schemas["TimingsView"];
type Held = Schemas["HeldView"];
type LogLine = Pick<Schemas["EventView"], "time" | "payload" | "attempt" | "stream" | "task">;
type Entry = Pick<Schemas["UnitEvent"], "seq" | "time" | "payload">;

export type Kind = "waited" | "unused" | "used" | "booting" | "script" | "uploading" | "cleaning";

/** A stage of a job, or of what it held. Times are milliseconds of the service's clock; an open end has not come yet. */
export interface Stage {
  kind: Kind;
  title: string;
  from: number;
  to: number | undefined;
}

/** One row of the timeline. */
export interface Lane {
  title: string;
  stages: Stage[];
}

/** What of a unit's journal is about one attempt of a job. */
export interface Lease {
  unit: string;
  entries: Entry[];
  /** When its lease ended. */
  ended: number | undefined;
}

/** What a unit's journal says of an attempt; undefined if it says nothing, for it keeps only its latest entries. */
export function lease(unit: string, journal: readonly Entry[], job: string, attempt: number): Lease | undefined {
  const isOther = (entry: Entry) => /\bjob [0-9A-Z]{26}, attempt \d+/.test(entry.payload);
  const start = journal.findIndex((entry) => entry.payload.includes(`job ${job}, attempt ${attempt}`));
  if (start < 0) return undefined;
  const next = journal.findIndex((entry, index) => index > start && isOther(entry));
  const entries = journal.slice(start, next < 0 ? undefined : next);
  const end = entries.find((entry) => entry.payload.startsWith("its lease ended"));
  return { unit, entries, ended: end && Date.parse(end.time) };
}

/** The time at the service when it answered: all that is not over was counted up to then. */
export const answeredAt = ({ times, intervals }: Timings): number => Date.parse(times.submitted) + (intervals["total"] ?? 0) * 1000;

/** The lanes of the present attempt: the job itself, then all that it held, in the order in which it got it. */
export function lanes(job: Job, timings: Timings, lines: readonly LogLine[], leases: readonly Lease[]): Lane[] {
  const held = timings.held.filter((each) => each.attempt === job.attempt);
  const end = timings.times.settled ? Date.parse(timings.times.settled) : answeredAt(timings);
  const rows = held.map((each) => {
    const from = each.since ? Date.parse(each.since) : end - each.seconds * 1000;
    const stages = [...heldStages(each, from, end, timings), ...cleaning(each, leases)];
    return { title: each.name === each.type ? each.name : `${each.name} (${each.type})`, stages, from };
  });
  rows.sort((one, other) => one.from - other.from);
  return [{ title: "Job", stages: jobStages(job, timings, lines) }, ...rows.map(({ title, stages }) => ({ title, stages }))];
}

function heldStages(held: Held, from: number, end: number, { times }: Timings): Stage[] {
  const isOpen = times.settled === null;
  const used = from + held.unused_seconds * 1000;
  const isWorker = held.name === "worker";
  const found: Stage[] = [];
  if (held.unused_seconds > 0) {
    const title = isWorker ? "booting: held, script not started" : "held, script not started";
    found.push({ kind: isWorker ? "booting" : "unused", title, from, to: isOpen && !times.started ? undefined : used });
  }
  if (times.started && used < end) found.push({ kind: "used", title: "held and used, until the job settled", from: used, to: isOpen ? undefined : end });
  return found;
}

/** The job's own stages. A log that is not complete, or gone, has no times of the script's end: it is part of `script` then. */
function jobStages(job: Job, { times }: Timings, lines: readonly LogLine[]): Stage[] {
  const at = (time: string | null) => (time === null ? undefined : Date.parse(time));
  const [submitted, ready, started, settled] = [at(times.submitted) as number, at(times.ready), at(times.started), at(times.settled)];
  const found: Stage[] = [{ kind: "waited", title: "waited for inputs, dependencies or an approval", from: submitted, to: ready ?? settled }];
  if (ready) found.push({ kind: "waited", title: "waited until it had all that it needs", from: ready, to: started ?? settled });
  if (started) found.push(...scriptStages(started, settled, lines.filter((each) => each.attempt === job.attempt)));
  return found.filter((each) => each.to === undefined || each.to > each.from);
}

function scriptStages(started: number, settled: number | undefined, lines: readonly LogLine[]): Stage[] {
  const ends = lines.filter((each) => each.task !== null && /^process (exited|was killed): /.test(each.payload));
  const sent = lines.filter((each) => each.task === null && each.stream === "detail" && /^uploading /.test(each.payload));
  const first = sent[0] && Date.parse(sent[0].time);
  const end = ends.at(-1) && Date.parse((ends.at(-1) as LogLine).time);
  if (!first || !end || first < end) return [{ kind: "script", title: "script", from: started, to: settled }];
  return [
    { kind: "script", title: "script", from: started, to: Math.max(started, end) },
    { kind: "uploading", title: "uploading outputs, and ending", from: Math.max(started, end), to: settled },
  ];
}

/** From the end of the lease, which the unit's journal has, until it was proved to be clean. */
function cleaning({ unit, clean }: Held, leases: readonly Lease[]): Stage[] {
  const ended = leases.find((each) => each.unit === unit)?.ended;
  const to = clean ? Date.parse(clean.time) : undefined;
  if (ended === undefined || (to !== undefined && to <= ended)) return [];
  return [{ kind: "cleaning", title: clean ? `cleaned by ${clean.by}` : "being cleaned", from: ended, to }];
}
