/** The jobs of a set as a table, which says what the graph shows. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";

import { JobName } from "../parts/names";
import { State } from "../parts/state";
import { Table, type Column } from "../parts/table";
import { duration, Lasts } from "../parts/time";
import { waited, type JobSet, type Member } from "./members";

/** Rows that are shown before somebody asks for all. */
const FEW = 100;

interface Props {
  set: JobSet;
  /** Ids of the jobs of the longest path. */
  path: readonly string[];
  now: number;
}

export function SetTable({ set, path, now }: Props) {
  const [isWhole, setWhole] = useState(false);
  const [state, setState] = useState("");
  const members = set.members.filter((each) => !state || (each.outcome ?? each.state) === state);
  const states = [...new Set(set.members.map((each) => each.outcome ?? each.state))].sort();
  return (
    <>
      <div class="filters">
        <label class="field">
          <span>State</span>
          <select value={state} onChange={(event) => setState(event.currentTarget.value)}>
            <option value="">any</option>
            {states.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </div>
      <Table
        caption="Jobs of the set, in the order in which they were submitted"
        columns={columns(set, new Set(path), now)}
        rows={isWhole ? members : members.slice(0, FEW)}
        id={({ id }) => id}
        empty="No job is in that state."
        isMarked={({ id }) => path.includes(id)}
      />
      {members.length > FEW && !isWhole && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {members.length}
        </button>
      )}
    </>
  );
}

function columns(set: JobSet, path: ReadonlySet<string>, now: number): Column<Member>[] {
  return [
    { title: "State", cell: (job) => <State of={job.state} outcome={job.outcome} /> },
    { title: "Job", cell: (job) => <Name job={job} isRepeated={set.repeated.has(job.id)} /> },
    { title: "After", cell: (job) => <After job={job} set={set} /> },
    { title: "Why", cell: (job) => (job.outcome === "succeeded" ? "" : (job.reason ?? (job.waits_for && `waits for ${job.waits_for}`) ?? "")) },
    { title: "Longest path", cell: (job) => (path.has(job.id) ? "on it" : ""), isMinor: true },
    { title: "Waited", cell: (job) => (job.times.ready ? duration(waited(job, now)) : "–"), isNumber: true },
    { title: "Ran for", cell: (job) => <Lasts from={job.times.started} to={job.times.settled} />, isNumber: true },
  ];
}

function Name({ job, isRepeated }: { job: Member; isRepeated: boolean }) {
  return (
    <>
      <JobName id={job.id} name={job.name} />
      {isRepeated && <span class="faint"> submitted again later</span>}
    </>
  );
}

function After({ job, set }: { job: Member; set: JobSet }) {
  if (job.dependencies.length === 0) return null;
  return (
    <span class="names">
      {job.dependencies.map(({ job: id, on }) => (
        <span key={id}>
          <Link href={`/jobs/${id}`} title={id}>
            {set.byId.get(id)?.name ?? id}
          </Link>
          {on !== "success" && <span class="faint"> {on === "always" ? "whatever comes" : "if it fails"}</span>}
        </span>
      ))}
    </span>
  );
}
