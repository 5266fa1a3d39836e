/** What is to be run again, and a button that does what can be done now. */

import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";

import { counted, retryJob } from "../jobs/acts";
import { Action, Copy } from "../parts/action";
import { command } from "../parts/command";
import { State } from "../parts/state";
import { together } from "../parts/together";
import type { Member } from "./members";
import type { Rerun } from "./rerun";

export function RerunCard({ of: { now, later }, then }: { of: Rerun; then: () => void }) {
  if (now.length + later.length === 0) return null;
  const ids = now.map(({ id }) => id);
  return (
    <section class="card" aria-labelledby="rerun">
      <h2 id="rerun">To run again</h2>
      {now.length > 0 && (
        <>
          <ul class="rerun">
            {now.map((member) => (
              <Line key={member.id} member={member}>
                {member.reason}
              </Line>
            ))}
          </ul>
          <div class="actions">
            <Action
              title={`Retry ${counted(now.length)}`}
              question={`${counted(now.length)} will be submitted once more, as new jobs of this set that wait for the same jobs as before.`}
              run={() => together(ids, retryJob, "were submitted once more")}
              done={`${counted(now.length)} submitted once more`}
              then={then}
            />
            <Copy text={ids.map((id) => command("penstock", "job", "retry", id)).join("\n")} title="Copy as commands" />
          </div>
        </>
      )}
      {later.length > 0 && (
        <>
          <h3>After that</h3>
          <p class="faint">
            {later.length === 1 ? "This one depends" : "These depend"} on jobs that did not end as needed. A retry waits for the same
            jobs as before, so it would fail again: submit {later.length === 1 ? "it" : "them"} anew, with the ids of the new jobs
            (<code>penstock job run -d NAME=JOB</code>), or the whole set.
          </p>
          <ul class="rerun">
            {later.map(({ member, after }) => (
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

function Line({ member, children }: { member: Member; children: ComponentChildren }) {
  return (
    <li>
      <State of={member.state} outcome={member.outcome} /> <Link href={`/jobs/${member.id}`}>{member.name}</Link>{" "}
      <span class="faint">{children}</span>
    </li>
  );
}
