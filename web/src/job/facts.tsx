/** What a job is: owner, target, worker, priority, tags; its resources, its leases, its attempts. */

import type { ComponentChildren } from "preact";

import type { Schemas } from "../api/client";
import { Linked } from "../parts/linked";
import { PoolName, UnitName } from "../parts/names";
import { State } from "../parts/state";
import { Table, type Column } from "../parts/table";
import { duration, exact, When } from "../parts/time";
import { SetLink } from "./sentence";
import type { Units } from "./units";

type Job = Schemas["JobView"];

export function Facts({ job }: { job: Job }) {
  const target = job.target_resolved || job.target;
  return (
    <section class="card" aria-label="Facts">
      <h2>Facts</h2>
      <dl class="facts">
        <Fact name="Id">
          <code>{job.id}</code>
        </Fact>
        <Fact name="Owner">{job.owner}</Fact>
        <Fact name="Target">
          <PoolName of={`target/${target}`} />
          {target !== job.target && <span class="faint"> asked for as {job.target}</span>}
        </Fact>
        {job.chosen && <Fact name="Chosen">{job.chosen}</Fact>}
        {job.host && <Fact name="Host">{job.host}</Fact>}
        <Fact name="Worker">
          <UnitName id={job.worker} />
        </Fact>
        <Fact name="Priority">{job.priority}</Fact>
        <Fact name="Timeout">{duration(job.timeout)}</Fact>
        {job.exit_code !== null && <Fact name="Exit code">{job.exit_code}</Fact>}
        {Object.entries(job.tags).map(([name, value]) => (
          <Fact key={name} name={`Tag ${name}`}>
            {name === "set" ? <SetLink of={value} /> : value}
          </Fact>
        ))}
        <Fact name="Caches">{job.cache_scope ? `adds to those of ${job.cache_scope}` : "adds to none"}</Fact>
        {job.environment && <Fact name="Environment">{job.environment}</Fact>}
        {job.environment && <Fact name="Approved by">{job.approved_by ?? "nobody yet"}</Fact>}
        {job.outputs_gone && (
          <Fact name="Outputs">
            deleted <When at={job.outputs_gone} />
          </Fact>
        )}
        {Object.entries(job.times).map(([name, at]) => at && <Fact key={name} name={name.charAt(0).toUpperCase() + name.slice(1)}>{exact(at)}</Fact>)}
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

type Held = Schemas["HeldView"];

const leases = (units: Units): Column<Held>[] => [
  { title: "Attempt", cell: (row) => row.attempt, isNumber: true, isMinor: true },
  { title: "Name", cell: (row) => row.name },
  { title: "Pool", cell: (row) => (row.pool ? <PoolName of={row.pool} /> : <span class="faint">–</span>) },
  { title: "Slot", cell: (row) => row.slot ?? <span class="faint">–</span> },
  { title: "Unit", cell: (row) => <UnitName id={row.unit} /> },
  { title: "Fence", cell: (row) => row.fence ?? <span class="faint">–</span>, isNumber: true },
  { title: "Held for", cell: (row) => duration(row.seconds), isNumber: true },
  { title: "Of it unused", cell: (row) => duration(row.unused_seconds), isNumber: true },
  { title: "Unit now", cell: (row) => <Now of={units.views.find((view) => view.id === row.unit)?.state} />, isMinor: true },
  { title: "Clean", cell: (row) => <Clean of={row.clean} /> },
];

const Now = ({ of }: { of: string | undefined }) => (of ? <State of={of} /> : <span class="faint">not kept</span>);

/** How it was made sure that a unit is clean; the service says nothing until then, or when it has forgotten. */
function Clean({ of }: { of: Held["clean"] }) {
  if (!of) return <span class="faint">no proof</span>;
  return (
    <>
      ✓ <When at={of.time} /> by {of.by}: {of.checked}
    </>
  );
}

/** What each attempt was granted: slots, units and fences, for how long, and what proved them clean. */
export function Leases({ held, units }: { held: readonly Held[]; units: Units }) {
  if (held.length === 0) return null;
  return (
    <section class="card" aria-label="Leases">
      <h2>Leases</h2>
      <Table caption="What was leased" columns={leases(units)} rows={held} id={(row) => `${row.attempt} ${row.name} ${row.unit}`} empty="" />
      {units.leases.map((each) => (
        <details key={each.unit}>
          <summary>
            Journal of <code>{each.unit}</code>
          </summary>
          <ol class="journal">
            {each.entries.map((entry) => (
              <li key={entry.seq}>
                <time dateTime={entry.time}>{exact(entry.time)}</time> {entry.payload}
              </li>
            ))}
          </ol>
        </details>
      ))}
    </section>
  );
}

const RESOURCES: Column<Schemas["JobResource"]>[] = [
  { title: "Resource", cell: (row) => row.name },
  { title: "Type", cell: (row) => <PoolName of={`resource/${row.type}`} /> },
  { title: "State", cell: (row) => <State of={row.state} /> },
  { title: "Slot", cell: (row) => row.slot ?? <span class="faint">–</span> },
];
const CHOICE: Column<Schemas["JobResource"]> = { title: "Chooses", cell: (row) => row.choice || <span class="faint">any</span> };

export function Resources({ job }: { job: Job }) {
  if (job.resources.length === 0) return null;
  const columns = job.resources.some((one) => one.choice) ? [...RESOURCES, CHOICE] : RESOURCES;
  return (
    <section class="card" aria-label="Resources">
      <h2>Resources</h2>
      <Table caption="Resources of this attempt" columns={columns} rows={job.resources} id={(row) => row.name} empty="" />
    </section>
  );
}

const ATTEMPTS: Column<Schemas["JobAttempt"]>[] = [
  { title: "Attempt", cell: (row) => row.attempt, isNumber: true },
  { title: "Outcome", cell: (row) => <State of={row.outcome} /> },
  { title: "Why", cell: (row) => <Linked text={row.reason} /> },
  { title: "Failure", cell: (row) => (row.failure ? <code>{row.failure}</code> : <span class="faint">–</span>) },
];

export function Attempts({ job }: { job: Job }) {
  if (job.attempts.length === 0) return null;
  return (
    <section class="card" aria-label="Earlier attempts">
      <h2>Earlier attempts</h2>
      <Table caption="Attempts before this one" columns={ATTEMPTS} rows={job.attempts} id={(row) => String(row.attempt)} empty="" />
    </section>
  );
}
