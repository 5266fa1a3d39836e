/** Who waits for whom, as a table: the same as the picture, for who does not see it. */

import { useState } from "preact/hooks";

import { JobName, PoolName } from "../names";
import { Table, type Column } from "../table";
import type { Job, Waits } from "./groups";

/** How many jobs are listed at first. */
const LISTED = 200;
/** How many names of holders a cell has. */
const NAMED = 5;

export function WaitsTable({ of, jobs }: { of: Waits; jobs: readonly Job[] }) {
  const [isShown, setShown] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const sorted = [...jobs].sort((one, other) => Number(other.waits.length > 0) - Number(one.waits.length > 0));
  return (
    <details class="waits-table" onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>As a table: {jobs.length} jobs</summary>
      {isShown && (
        <Table
          caption="Who waits for whom"
          columns={columns(of)}
          rows={isWhole ? sorted : sorted.slice(0, LISTED)}
          id={(job) => job.id}
          empty="No job waits or holds anything."
        />
      )}
      {isShown && !isWhole && jobs.length > LISTED && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {jobs.length}
        </button>
      )}
    </details>
  );
}

const columns = ({ pools }: Waits): Column<Job>[] => [
  { title: "Job", cell: (job) => <JobName id={job.id} name={job.name} owner={job.owner} /> },
  { title: "Waits for", cell: (job) => <Pools of={job.waits} /> },
  { title: "Which is held by", cell: (job) => <Holders of={job.waits.flatMap((pool) => pools.get(pool)?.holders ?? [])} /> },
  { title: "Holds", cell: (job) => <Pools of={job.holds} /> },
];

function Pools({ of }: { of: readonly string[] }) {
  if (of.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="waits-cell">
      {of.map((pool) => (
        <li key={pool}>
          <PoolName of={pool} />
        </li>
      ))}
    </ul>
  );
}

function Holders({ of }: { of: readonly Job[] }) {
  const jobs = [...new Set(of)];
  if (jobs.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="waits-cell">
      {jobs.slice(0, NAMED).map((job) => (
        <li key={job.id}>
          <JobName id={job.id} name={job.name} owner={job.owner} />
        </li>
      ))}
      {jobs.length > NAMED && <li class="faint">and {jobs.length - NAMED} more</li>}
    </ul>
  );
}
