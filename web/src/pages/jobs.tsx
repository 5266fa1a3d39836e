/** The list of jobs, newest first. Its filters are those of `penstock job list`, and stand in the address. */

import { api, type Schemas } from "../api/client";
import { Choice, useFilters, Wanted } from "../parts/filters";
import { JobName, UnitName } from "../parts/names";
import { Page, Shown } from "../parts/page";
import { More, usePages } from "../parts/pages";
import { State } from "../parts/state";
import { Table, type Column } from "../parts/table";
import { Lasts, When } from "../parts/time";

type Job = Schemas["JobView"];

const STATES = ["waiting", "queued", "acquiring", "running", "settled"] as const;
type StateName = (typeof STATES)[number];

const COLUMNS: Column<Job>[] = [
  { title: "State", cell: (job) => <State of={job.state} outcome={job.outcome} /> },
  { title: "Job", cell: (job) => <JobName id={job.id} name={job.name} owner={job.owner} /> },
  { title: "Why", cell: (job) => job.reason ?? (job.waits_for && `waits for ${job.waits_for}`) ?? "" },
  { title: "Target", cell: (job) => job.target_resolved || job.target, isMinor: true },
  { title: "Worker", cell: (job) => <UnitName id={job.worker} />, isMinor: true },
  { title: "Submitted", cell: (job) => <When at={job.times.submitted} /> },
  { title: "Ran for", cell: (job) => <Lasts from={job.times.started} to={job.times.settled} />, isNumber: true },
];

export default function Jobs() {
  const [filters, change] = useFilters();
  const query = {
    ...(filters["state"] && { state: filters["state"] as StateName }),
    ...(filters["target"] && { target: filters["target"] }),
    ...(filters["name"] && { name: filters["name"] }),
    ...(filters["owner"] && { owner: filters["owner"] }),
    ...(filters["tag"] && { tag: filters["tag"] }),
    ...(filters["all"] && { all: true }),
  };
  const jobs = usePages<Job>(JSON.stringify(query), (page, signal) =>
    api.GET("/v1/jobs", { params: { query: { ...query, ...(page && { page }) } }, ...(signal && { signal }) }),
  );
  return (
    <Page title="Jobs">
      <div class="filters">
        <Choice label="State" value={filters["state"]} options={STATES} onChange={(value) => change("state", value)} />
        <Wanted label="Name" value={filters["name"]} onChange={(value) => change("name", value)} hint="build*" />
        <Wanted label="Owner" value={filters["owner"]} onChange={(value) => change("owner", value)} />
        <Wanted label="Target" value={filters["target"]} onChange={(value) => change("target", value)} />
        <Wanted label="Tag" value={filters["tag"]} onChange={(value) => change("tag", value)} hint="name=value" />
      </div>
      <Shown of={jobs}>
        {() => (
          <Table caption="Jobs" columns={COLUMNS} rows={jobs.rows} id={(job) => job.id} empty="No job looks like that." />
        )}
      </Shown>
      <More load={jobs.more} />
    </Page>
  );
}
