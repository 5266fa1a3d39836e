/** A job's log, as large as the window. */

import { useParams } from "wouter-preact";

import { api } from "../api/client";
import { useWatch } from "../api/watch";
import { isJobOver, JobRefused } from "../job/refused";
import { Log } from "../parts/log/log";
import { Page } from "../parts/page";
import { State } from "../parts/state";

export default function JobLog() {
  const { job = "" } = useParams<{ job: string }>();
  const found = useWatch(job, (signal) => api.GET("/v1/jobs/{job}", { params: { path: { job } }, signal }), { isLast: isJobOver });
  const name = found.value?.name || job;
  const heading = (
    <>
      Log of {name} {found.value && <State of={found.value.state} outcome={found.value.outcome} />}
    </>
  );
  const path = [
    { title: "Jobs", to: "/" },
    { title: name, to: `/jobs/${job}` },
  ];
  if (found.error && !found.value) return <JobRefused error={found.error} job={job} retry={found.refresh} />;
  return (
    <Page title={`Log of ${name}`} heading={heading} path={path}>
      <Log key={job} job={job} state={found.value?.state} isFull />
    </Page>
  );
}
