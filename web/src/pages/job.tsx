/** A job: where it is and why, its timeline, its log, its files, and all that is known of it. */

import { useParams } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Actions, Commands } from "../job/actions";
import { Attempts, Facts, Leases, Resources } from "../job/facts";
import { Inputs, Outputs, Store } from "../job/files";
import { Cost } from "../job/cost";
import { isJobOver, JobRefused } from "../job/refused";
import { Review } from "../job/review";
import { Script } from "../job/script";
import { Sentence } from "../job/sentence";
import { Timeline } from "../job/timeline";
import { useUnits } from "../job/units";
import { Log } from "../parts/log/log";
import { Loading, Page, Problem } from "../parts/page";
import { State } from "../parts/state";
import "../style/job.css";

type Job = Schemas["JobView"];

export default function JobPage() {
  const { job = "" } = useParams<{ job: string }>();
  const found = useWatch(job, (signal) => api.GET("/v1/jobs/{job}", { params: { path: { job } }, signal }), { isLast: isJobOver });
  if (found.error && !found.value) return <JobRefused error={found.error} job={job} retry={found.refresh} />;
  if (!found.value) return <Page title={`Job ${job}`}>{<Loading />}</Page>;
  return <Whole key={job} job={found.value} refresh={found.refresh} error={found.error} />;
}

function Whole({ job, refresh, error }: { job: Job; refresh: () => void; error: Parameters<typeof Problem>[0]["error"] | undefined }) {
  const units = useUnits(job);
  const heading = (
    <>
      {job.name || job.id} <State of={job.state} outcome={job.outcome} />
    </>
  );
  return (
    <Page
      title={job.name || job.id}
      heading={heading}
      path={[{ title: "Jobs", to: "/" }]}
      actions={<Actions job={job} refresh={refresh} />}
    >
      {error && <Problem error={error} retry={refresh} />}
      <Sentence job={job} />
      <Review job={job} refresh={refresh} />
      <Times job={job} units={units} />
      <Log job={job.id} state={job.state} />
      <Leases units={units} />
      <div class="job-cards">
        <Outputs job={job} />
        <Facts job={job} />
        <Inputs job={job} />
        <Resources job={job} />
        <Attempts job={job} />
        <Store job={job} />
        <Script job={job} />
        <Cost job={job} />
        <Commands job={job} />
      </div>
    </Page>
  );
}

/** The timeline. It is asked for anew when the job gets further, not while time passes. */
function Times({ job, units }: { job: Job; units: ReturnType<typeof useUnits> }) {
  const key = [job.id, job.state, job.attempt, ...job.resources.map((each) => each.state)].join(" ");
  const timings = useWatch(key, (signal) => api.GET("/v1/jobs/{job}/timings", { params: { path: { job: job.id } }, signal }), {
    isLast: () => true,
  });
  if (timings.error) return <Problem error={timings.error} retry={timings.refresh} />;
  return timings.value ? <Timeline job={job} timings={timings.value} units={units} /> : null;
}
