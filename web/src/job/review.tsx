/** What a job is that asks for an environment; a reviewer approves or refuses it here. */

import { api, ask, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { plain } from "../log/ansi";
import { Action } from "../parts/action";
import { Shown } from "../parts/page";
import { When } from "../parts/time";
import { useSession } from "../session";

type Job = Schemas["JobView"];
type View = Schemas["ReviewView"];

export function Review({ job, refresh }: { job: Job; refresh: () => void }) {
  if (!job.environment) return null;
  return <Asked key={`${job.state} ${job.approved_by}`} job={job} refresh={refresh} />;
}

function Asked({ job, refresh }: { job: Job; refresh: () => void }) {
  const review = useWatch<View>(`review ${job.id}`, (signal) => api.GET("/v1/jobs/{job}/review", { params: { path: { job: job.id } }, signal }), {
    isLast: () => job.state !== "waiting",
  });
  return (
    <section class="card" aria-label="Environment">
      <h2>Environment {job.environment}</h2>
      <Shown of={review}>{(found) => <Details found={found} job={job} refresh={refresh} />}</Shown>
    </section>
  );
}

function Details({ found, job, refresh }: { found: View; job: Job; refresh: () => void }) {
  return (
    <>
      <p>
        {found.by ? `Approved by ${found.by}.` : job.state === "settled" ? "Nobody approved it." : "It waits for an approval; without one it fails "}
        {!found.by && job.state !== "settled" && <When at={found.until} />}
      </p>
      <dl class="facts">
        <dt>Gets the privileges</dt>
        <dd>{found.privileges.join(", ") || "none"}</dd>
        {Object.entries(found.source).map(([name, value]) => (
          <Pair key={name} name={name} value={value} />
        ))}
        <dt>Reviewers</dt>
        <dd>{[...found.reviewers, ...found.logins.map((each) => `${each} at GitHub`)].join(", ") || "none"}</dd>
        {Object.entries(found.env).map(([name, value]) => (
          <Pair key={name} name={name} value={value} />
        ))}
      </dl>
      {found.script !== null && (
        <details open={!found.by && job.state !== "settled"}>
          <summary>What it runs</summary>
          <pre class="script" tabIndex={0}>
            {found.script.split("\n").map(plain).join("\n")}
          </pre>
        </details>
      )}
      {!found.by && job.state !== "settled" && <Decide found={found} job={job} refresh={refresh} />}
    </>
  );
}

function Pair({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{plain(name)}</dt>
      <dd>
        <code>{plain(value)}</code>
      </dd>
    </>
  );
}

function Decide({ found, job, refresh }: { found: View; job: Job; refresh: () => void }) {
  const { who, isOperator } = useSession();
  if (!who || !(found.reviewers.includes(who.name) || isOperator)) return <p class="faint">You are none of its reviewers.</p>;
  const decide = (refuse: boolean) => () =>
    ask(api.POST("/v1/jobs/{job}/review", { params: { path: { job: job.id } }, body: { refuse } }));
  return (
    <div class="actions">
      <Action
        title="Approve"
        run={decide(false)}
        done="Approved"
        question={`Let ${job.name || job.id} of ${job.owner} run in ${found.environment}? It gets the privileges ${found.privileges.join(", ") || "(none)"}.`}
        then={refresh}
      />
      <Action title="Refuse" run={decide(true)} done="Refused" question="Refuse it? The job fails." isDangerous then={refresh} />
    </div>
  );
}
