/** What is to be run again, and buttons that do it. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";

import { counted, retryJob } from "../jobs/acts";
import { Action, Copy } from "../parts/action";
import { State } from "../parts/state";
import { together } from "../parts/together";
import type { JobSet, Member } from "./members";
import { commandsOf, type Rerun, type Step } from "./rerun";
import { rerun } from "./rerun-act";

interface Props {
  of: Rerun;
  set: JobSet;
  then: () => void;
}

export function RerunCard({ of: { now, steps, blocked }, set, then }: Props) {
  if (steps.length + blocked.length === 0) return null;
  const first = new Set(now.map(({ id }) => id));
  const later = steps.filter(({ member }) => !first.has(member.id));
  return (
    <section class="card" aria-labelledby="rerun">
      <h2 id="rerun">To run again</h2>
      {now.length > 0 && (
        <ul class="rerun">
          {now.map((member) => (
            <Line key={member.id} member={member}>
              {member.reason}
            </Line>
          ))}
        </ul>
      )}
      {later.length > 0 && (
        <>
          <h3>After that</h3>
          <ul class="rerun">
            {later.map(({ member, instead }) => (
              <Line key={member.id} member={member}>
                after {instead.map(({ job }) => set.byId.get(job)?.name ?? job).join(", ")}
              </Line>
            ))}
          </ul>
        </>
      )}
      {steps.length > 0 && <Actions now={now} steps={steps} then={then} />}
      {blocked.length > 0 && (
        <>
          <h3>Not from here</h3>
          <p class="faint">
            {blocked.length === 1 ? "This one depends" : "These depend"} on jobs that did not end as needed and are not run again, so a
            retry would fail as before.
          </p>
          <ul class="rerun">
            {blocked.map(({ member, after }) => (
              <Line key={member.id} member={member}>
                after {after.join(", ")}
              </Line>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Actions({ now, steps, then }: { now: readonly Member[]; steps: readonly Step[]; then: () => void }) {
  const [progress, setProgress] = useState("");
  const run = async () => {
    try {
      await rerun(steps, (done) => setProgress(`${done} of ${steps.length} submitted…`));
    } finally {
      setProgress("");
      then(); // also if one was refused: some may have been submitted
    }
  };
  return (
    <div class="actions">
      <Action
        title="Re-run what failed and what depends on it"
        question={`${counted(steps.length)} will be submitted once more, as new jobs of this set. A job that depends on one of these waits for its new job.`}
        fields={
          <p role="status" class="faint">
            {progress}
          </p>
        }
        run={run}
        done={`${counted(steps.length)} submitted once more`}
      />
      {now.length > 0 && now.length < steps.length && (
        <Action
          title={`Retry ${counted(now.length)}`}
          question={`Only what failed, ${counted(now.length)}, will be submitted once more, and nothing that depends on it.`}
          run={() =>
            together(
              now.map(({ id }) => id),
              retryJob,
              "were submitted once more",
            )
          }
          done={`${counted(now.length)} submitted once more`}
          then={then}
        />
      )}
      <Copy text={commandsOf(steps)} title="Copy as commands" />
    </div>
  );
}

function Line({ member, children }: { member: Member; children: ComponentChildren }) {
  return (
    <li>
      <State of={member.state} outcome={member.outcome} /> <Link href={`/jobs/${member.id}`}>{member.name}</Link>{" "}
      <span class="faint">{children}</span>
    </li>
  );
}
