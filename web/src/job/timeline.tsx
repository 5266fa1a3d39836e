/** A job's timeline: a bar for each stage, in a row for the job and one for each thing that it held. */

import { useMemo } from "preact/hooks";

import type { Schemas } from "../api/client";
import { duration, exact, useNow } from "../parts/time";
import { Table, type Column } from "../parts/table";
import { answeredAt, type Kind, lanes, type Lane, type Stage } from "./stages";
import type { Units } from "./units";

type Job = Schemas["JobView"];
type Timings = Schemas["TimingsView"];

const LEGEND: [Kind, string][] = [
  ["waited", "waited"],
  ["booting", "booting"],
  ["unused", "held, not used yet"],
  ["script", "script"],
  ["used", "held and used"],
  ["uploading", "uploading"],
  ["cleaning", "cleaning"],
];

export function Timeline({ job, timings, units }: { job: Job; timings: Timings; units: Units }) {
  const all = useMemo(() => lanes(job, timings, units.lines, units.leases), [job, timings, units]);
  const behind = useMemo(() => Date.now() - answeredAt(timings), [timings]);
  const now = useNow() - behind;
  const stages = all.flatMap((lane) => lane.stages);
  const isOpen = stages.some((each) => each.to === undefined);
  const from = Math.min(...stages.map((each) => each.from));
  const to = Math.max(isOpen ? now : 0, ...stages.map((each) => each.to ?? now), from + 1);
  const kinds = new Set(stages.map((each) => each.kind));
  return (
    <section class="card" aria-label="Timeline">
      <h2>Timeline{job.attempts.length > 0 && <span class="faint"> of attempt {job.attempt}</span>}</h2>
      <div class="lanes" aria-hidden="true">
        {all.map((lane) => (
          <Row key={lane.title} lane={lane} from={from} to={to} now={now} />
        ))}
        <span />
        <span class="lane-scale">
          <span>{exact(from)}</span>
          <span>{isOpen ? "now" : `+ ${duration((to - from) / 1000)}`}</span>
        </span>
      </div>
      <p class="legend" aria-hidden="true">
        {LEGEND.filter(([kind]) => kinds.has(kind)).map(([kind, word]) => (
          <span key={kind}>
            <span class={`swatch stage-${kind}`} /> {word}
          </span>
        ))}
      </p>
      <Past job={job} held={timings.held} />
      <details>
        <summary>As a table</summary>
        <Table caption="Stages" columns={columns(now)} rows={flat(all)} id={(row) => `${row.lane} ${row.title} ${row.from}`} empty="No stages yet." />
      </details>
    </section>
  );
}

function Row({ lane, from, to, now }: { lane: Lane; from: number; to: number; now: number }) {
  const part = (time: number) => ((time - from) / (to - from)) * 100;
  return (
    <>
      <span class="lane-title">{lane.title}</span>
      <span class="lane">
        {lane.stages.map((each) => {
          const end = each.to ?? Math.max(now, each.from);
          const place = { left: `${part(each.from)}%`, width: `${Math.max(part(end) - part(each.from), 0.2)}%` };
          const said = `${each.title}: ${duration((end - each.from) / 1000)}${each.to === undefined ? " so far" : ""}`;
          return (
            <span key={each.from} class={`stage stage-${each.kind}`} style={place} title={said}>
              <span class="stage-text">{duration((end - each.from) / 1000)}</span>
            </span>
          );
        })}
      </span>
    </>
  );
}

type Flat = Stage & { lane: string };

const flat = (all: Lane[]): Flat[] => all.flatMap((lane) => lane.stages.map((each) => ({ ...each, lane: lane.title })));

const columns = (now: number): Column<Flat>[] => [
  { title: "Of", cell: (row) => row.lane },
  { title: "Stage", cell: (row) => row.title },
  { title: "From", cell: (row) => exact(row.from) },
  { title: "To", cell: (row) => (row.to === undefined ? "not over" : exact(row.to)) },
  { title: "Took", cell: (row) => duration(((row.to ?? now) - row.from) / 1000), isNumber: true },
];

/** Earlier attempts: how long each held what, and for how long its script did not run. When that was, the service does not say. */
function Past({ job, held }: { job: Job; held: Timings["held"] }) {
  const past = held.filter((each) => each.attempt !== job.attempt);
  if (past.length === 0) return null;
  const most = Math.max(...past.map((each) => each.seconds), 0.001);
  return (
    <>
      <h3>Earlier attempts held</h3>
      <div class="lanes">
        {past.map((each) => (
          <PastRow key={`${each.attempt} ${each.name}`} held={each} most={most} />
        ))}
      </div>
    </>
  );
}

function PastRow({ held, most }: { held: Schemas["HeldView"]; most: number }) {
  const unused = (held.unused_seconds / most) * 100;
  const used = ((held.seconds - held.unused_seconds) / most) * 100;
  const said = `held for ${duration(held.seconds)}, of which its script did not run for ${duration(held.unused_seconds)}`;
  return (
    <>
      <span class="lane-title">
        {held.attempt}: {held.name}
      </span>
      <span class="lane" role="img" aria-label={said} title={said}>
        <span class="stage stage-unused" style={{ left: "0%", width: `${unused}%` }} />
        <span class="stage stage-used" style={{ left: `${unused}%`, width: `${used}%` }} />
      </span>
    </>
  );
}
