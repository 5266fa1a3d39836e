/** Where a job is and why, in one sentence; what holds it up, while it waits; why it failed, once it has. */

import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { plain, spans } from "../log/ansi";
import { Linked } from "../parts/linked";
import { JobName, PoolName, UnitName } from "../parts/names";
import { Problem } from "../parts/page";
import { ByHand } from "../parts/pools/numbers";
import { Table, type Column } from "../parts/table";
import { bytes, duration, When } from "../parts/time";

type Job = Schemas["JobView"];
type Why = Schemas["WhyView"];
type Block = Schemas["BlockView"];

export function Sentence({ job }: { job: Job }) {
  if (job.state !== "settled") return <Waits key={`${job.state} ${job.attempt}`} job={job} />;
  const took = (Date.parse(job.times.settled ?? job.times.submitted) - Date.parse(job.times.submitted)) / 1000;
  return (
    <section class="card" aria-label="Where the job is">
      <p class="sentence">
        The job {job.outcome === "cancelled" ? "was cancelled" : job.outcome}
        {job.outcome !== "succeeded" && job.reason && (
          <>
            : <Linked text={job.reason} />
          </>
        )}
        . It settled <When at={job.times.settled} />, {duration(took)} after it was submitted.
      </p>
      {job.held && <Held held={job.held} />}
      {job.failure && <Failure of={job.failure} />}
    </section>
  );
}

/** Before a job settles the service says itself why it is where it is. */
function Waits({ job }: { job: Job }) {
  const why = useWatch<Why>(`why ${job.id}`, (signal) => api.GET("/v1/jobs/{job}/why", { params: { path: { job: job.id } }, signal }), {
    isLast: (found) => found.state === "running",
  });
  const found = why.value;
  return (
    <section class="card" aria-label="Where the job is" aria-live="polite">
      {why.error && <Problem error={why.error} retry={why.refresh} />}
      <p class="sentence">{found ? <Linked text={`${capital(found.summary)}.`} names={names(found)} /> : `The job is ${job.state}.`}</p>
      {found && (
        <dl class="facts">
          <dt>Since</dt>
          <dd>
            <When at={found.since} />
          </dd>
          {job.state !== "running" && (
            <>
              <dt>May start</dt>
              <dd>
                {found.expected_start ? <When at={found.expected_start} /> : "not known"}
                {found.basis && <span class="faint"> ({found.basis})</span>}
              </dd>
            </>
          )}
          {found.unblocks && (
            <>
              <dt>Goes on when</dt>
              <dd>
                <Linked text={found.unblocks} names={names(found)} />
              </dd>
            </>
          )}
        </dl>
      )}
      {found?.blocked_on && <Blocked on={found.blocked_on} />}
      {job.held && <Held held={job.held} />}
    </section>
  );
}

/** The names of the jobs that a sentence may speak of. */
function names({ blocked_on: block }: Why): Map<string, string> {
  const all = [...(block?.held_by ?? []), ...(block?.ahead ?? [])];
  return new Map(all.flatMap((each) => (each.job_name ? [[each.job, each.job_name]] : [])));
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const HOLDERS: Column<Schemas["HolderView"]>[] = [
  { title: "Slot", cell: (row) => row.slot },
  { title: "Held by", cell: (row) => <JobName id={row.job} name={row.job_name} owner={row.job_owner} /> },
  { title: "Since", cell: (row) => <When at={row.since} /> },
];

const AHEAD: Column<Schemas["AheadView"]>[] = [
  { title: "Ahead", cell: (row) => <JobName id={row.job} name={row.job_name} owner={row.job_owner} /> },
  { title: "Waits since", cell: (row) => <When at={row.since} /> },
];

const KEPT: Column<Schemas["KeptView"]>[] = [
  { title: "Slot", cell: (row) => row.slot },
  { title: "Unit", cell: (row) => <UnitName id={row.unit} /> },
  { title: "Why", cell: (row) => <Linked text={row.says} /> },
  { title: "Ends when", cell: (row) => row.ends_when },
];

function Blocked({ on }: { on: Block }) {
  return (
    <>
      <p>
        <PoolName of={on.pool} />: place {on.position} in the queue; {on.held} of {on.limit} held, {on.free} free
        {on.paused && (
          <>
            , <strong>paused {on.pause ? <ByHand of={on.pause} /> : "by an operator"}</strong>
          </>
        )}
        .
      </p>
      <Table caption="Who holds it" columns={HOLDERS} rows={on.held_by} id={(row) => row.slot} empty="No job holds a slot of it." />
      {on.ahead.length > 0 && <Table caption="Who is ahead" columns={AHEAD} rows={on.ahead} id={(row) => row.job} empty="" />}
      {on.kept.length > 0 && <Table caption="What is kept" columns={KEPT} rows={on.kept} id={(row) => row.unit} empty="" />}
      {on.away.length > 0 && <p>Away: {on.away.map((each) => (each.power ? `${each.host} (${each.power})` : each.host)).join(", ")}.</p>}
    </>
  );
}

function Held({ held }: { held: Schemas["HeldJob"] }) {
  return (
    <p>
      Held by {held.by} until <When at={held.until} />: {held.reason}. So far {duration(held.unit_seconds)} of units' time:{" "}
      {held.units.map((each, index) => (
        <span key={each.id}>
          {index > 0 && ", "}
          <UnitName id={each.id} /> ({each.pool}, slot {each.slot})
        </span>
      ))}
      .
    </p>
  );
}

function Failure({ of }: { of: Schemas["JobFailure"] }) {
  return (
    <div class="failure">
      <dl class="facts">
        <dt>Failure</dt>
        <dd>
          <code>{of.kind}</code>: {of.what}
        </dd>
        {of.task && (
          <>
            <dt>Task</dt>
            <dd>
              {of.task.index} “{plain(of.task.name)}”
            </dd>
          </>
        )}
        {Object.entries(of.evidence).map(([name, value]) => (
          <Evidence key={name} name={name} value={value} />
        ))}
        <dt>What to do</dt>
        <dd>{of.advice}</dd>
      </dl>
      {of.lines.length > 0 && (
        <figure class="last-lines">
          <figcaption>The last lines {of.lines_of === "console" ? "of its machine's console" : "that it printed"}</figcaption>
          <pre class="log" tabIndex={0}>
            {of.lines.map((line, index) => (
              <Line key={index} text={line} />
            ))}
          </pre>
        </figure>
      )}
    </div>
  );
}

/** A fact that was observed, in the units that its name says. */
function Evidence({ name, value }: { name: string; value: unknown }) {
  const words = name.replace(/_(bytes|seconds)$/, "").replaceAll("_", " ");
  const text = typeof value === "string" ? plain(value) : JSON.stringify(value);
  const shown = typeof value !== "number" ? text : name.endsWith("_bytes") ? bytes(value) : name.endsWith("_seconds") ? duration(value) : text;
  return (
    <>
      <dt>{capital(words)}</dt>
      <dd>
        <Linked text={shown} />
      </dd>
    </>
  );
}

function Line({ text }: { text: string }) {
  return (
    <>
      {spans(text).map((each, index) => (
        <span key={index} class={each.classes}>
          {each.text}
        </span>
      ))}
      {"\n"}
    </>
  );
}

/** The sets of jobs that this one is in, by its tags. */
export const SetLink = ({ of }: { of: string }) => <Link href={`/sets/${encodeURIComponent(of)}`}>{of}</Link>;
