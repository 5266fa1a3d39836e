/** What one can do with a job, and the commands that do the same. */

import { useLocation } from "wouter-preact";

import { api, ask, type Schemas } from "../api/client";
import { Action, Copy, Field } from "../parts/action";
import { useSession } from "../session";

type Job = Schemas["JobView"];

/** Whether somebody may act on a job: its owner or an operator; of a repository's job the service knows it. */
export function useMayAct(job: Job): boolean {
  const { who, isOperator } = useSession();
  return Boolean(who) && (isOperator || who?.name === job.owner || job.owner.includes("/"));
}

export function Actions({ job, refresh }: { job: Job; refresh: () => void }) {
  const mayAct = useMayAct(job);
  if (!mayAct) return null;
  const isOver = job.state === "settled";
  return (
    <>
      {isOver && <Retry job={job} />}
      {!isOver && !job.held && <Hold job={job} then={refresh} />}
      {job.held && <Release job={job} then={refresh} />}
      {isOver && !job.outputs_gone && <Discard job={job} then={refresh} />}
      {!isOver && <Cancel job={job} then={refresh} />}
    </>
  );
}

interface Props {
  job: Job;
  then: () => void;
}

const at = (job: Job) => ({ params: { path: { job: job.id } } });

function Cancel({ job, then }: Props) {
  return (
    <Action
      title="Cancel"
      run={() => ask(api.POST("/v1/jobs/{job}/cancel", at(job)))}
      done="The job is being cancelled"
      question={`Cancel ${job.name || job.id}? Its script is ended, and all that it holds is given back. Outputs uploaded so far are kept.`}
      isDangerous
      then={then}
    />
  );
}

function Retry({ job }: { job: Job }) {
  const [, go] = useLocation();
  const retry = async () => go(`/jobs/${(await ask(api.POST("/v1/jobs/{job}/retry", at(job)))).id}`);
  return <Action title="Retry" run={retry} done="Submitted again: this is the new job" />;
}

function Hold({ job, then }: Props) {
  const hold = (form: FormData) => {
    const minutes = Number(form.get("minutes"));
    const body = { reason: String(form.get("reason")), whatever: form.has("whatever"), for: minutes > 0 ? Math.round(minutes * 60) : null };
    return ask(api.POST("/v1/jobs/{job}/hold", { ...at(job), body }));
  };
  return (
    <Action
      title="Hold"
      run={hold}
      done="What the job has is held when its script ends"
      question="Keep its worker and resources when its script has ended, so that you can look at them. Others wait meanwhile."
      fields={
        <>
          <Field label="Reason, shown to others" name="reason" required maxLength={300} />
          <Field label="Minutes" name="minutes" type="number" min={1} max={10080} hint="Without a number as long as the site allows." />
          <label>
            <input type="checkbox" name="whatever" /> Also if the script succeeds
          </label>
        </>
      }
      then={then}
    />
  );
}

function Release({ job, then }: Props) {
  return (
    <Action
      title="Release"
      run={() => ask(api.POST("/v1/jobs/{job}/release", at(job)))}
      done="The hold has ended"
      question="End the hold? What is held is cleaned and given back; what is on it is lost."
      isDangerous
      then={then}
    />
  );
}

function Discard({ job, then }: Props) {
  return (
    <Action
      title="Discard"
      run={() => ask(api.POST("/v1/jobs/{job}/discard", at(job)))}
      done="The job's files and its log are deleted"
      question={`Delete the outputs, inputs and log of ${job.name || job.id} now? They cannot be brought back.`}
      isDangerous
      then={then}
    />
  );
}

/** The commands that show or do the same. */
export function Commands({ job }: { job: Job }) {
  const isOver = job.state === "settled";
  const names = ["show", isOver ? "timings" : "why", "tail", "outputs", "script", "cost", isOver ? "retry" : "cancel"];
  return (
    <section class="card" aria-label="Commands">
      <h2>As commands</h2>
      <ul class="commands">
        {names.map((name) => (
          <li key={name}>
            <code>
              penstock job {name} {job.id}
            </code>
            <Copy text={`penstock job ${name} ${job.id}`} title={`Copy ${name}`} />
          </li>
        ))}
      </ul>
    </section>
  );
}
