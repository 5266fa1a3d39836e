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
  const timings = useTimings(job);
  const held = timings.value?.held ?? [];
  const units = useUnits(job, held);
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
      {timings.error && <Problem error={timings.error} retry={timings.refresh} />}
      {timings.value && <Timeline job={job} timings={timings.value} units={units} />}
      <Log job={job.id} state={job.state} />
      <Leases held={held} units={units} />
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

/** How long the job held what. It is asked for anew when the job gets further, not while time passes; then until all is clean. */
function useTimings(job: Job) {
  const key = [job.id, job.state, job.attempt, ...job.resources.map((each) => each.state)].join(" ");
  const request = (signal: AbortSignal) => api.GET("/v1/jobs/{job}/timings", { params: { path: { job: job.id } }, signal });
  return useWatch(key, request, { isLast: (found) => job.state !== "settled" || found.held.every((each) => each.clean) || isLongAgo(job) });
}

/** A proof that is not there so long after the end was forgotten, or an operator has to see to the unit. */
const isLongAgo = (job: Job): boolean => Date.now() - Date.parse(job.times.settled ?? "") > 10 * 60_000;
