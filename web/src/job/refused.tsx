/** What is said where a job may not be read, or is not there. */

import { Link } from "wouter-preact";

import type { Refused, Schemas } from "../api/client";
import { Page, Problem } from "../parts/page";

/** Whether nothing about a job changes any more: it has settled, and nothing of it is held. */
export const isJobOver = (job: Schemas["JobView"]): boolean =>
  job.state === "settled" && !job.held && job.resources.every((each) => each.state === "released" || each.state === "wanted");

const SAID: Record<number, [string, string]> = {
  401: ["Sign in to see this job", "It is not public, or nobody is signed in here, or the session has ended."],
  403: ["This job is not yours to see", "It belongs to another user, and is not public. Ask its owner for a share."],
  404: ["There is no such job", "Its id may be mistyped. It may belong to another user and not be public; or it was deleted long ago."],
  410: ["This job is gone", "What was kept of it has been deleted."],
};

export function JobRefused({ error, job, retry }: { error: Refused; job: string; retry: () => void }) {
  const said = SAID[error.status];
  if (!said) return <Page title={`Job ${job}`}>{<Problem error={error} retry={retry} />}</Page>;
  return (
    <Page title={said[0]} path={[{ title: "Jobs", to: "/" }]}>
      <div class="card narrow-card" role="alert">
        <p>{said[1]}</p>
        <p class="faint">
          {error.detail} ({error.status} {error.code})
        </p>
        {error.isSignedOut && (
          <p>
            <Link href={`/sign-in?to=${encodeURIComponent(location.pathname + location.hash)}`}>Sign in</Link>
          </p>
        )}
      </div>
    </Page>
  );
}
