/** What can be done with the jobs that are selected. */

import { Action, Copy } from "../parts/action";
import { command } from "../parts/command";
import { together } from "../parts/together";
import { cancelJob, counted, retryJob } from "./acts";
import type { Job } from "./groups";

interface Props {
  jobs: readonly Job[];
  clear: () => void;
  then: () => void;
}

export function Selected({ jobs, clear, then }: Props) {
  if (jobs.length === 0) return null;
  const open = jobs.filter((job) => job.state !== "settled").map((job) => job.id);
  const over = jobs.filter((job) => job.state === "settled").map((job) => job.id);
  const finish = () => {
    clear();
    then();
  };
  return (
    <div class="selected" role="region" aria-label="Selected jobs">
      <strong role="status">{counted(jobs.length)} selected</strong>
      {open.length > 0 && (
        <Action
          title={`Cancel ${open.length}`}
          isDangerous
          question={`${counted(open.length)} that ${open.length === 1 ? "has" : "have"} not settled will be cancelled. Outputs that were uploaded are kept.`}
          run={() => together(open, cancelJob, "are being cancelled")}
          done={`${counted(open.length)} being cancelled`}
          then={finish}
        />
      )}
      {over.length > 0 && (
        <Action
          title={`Retry ${over.length}`}
          question={`${counted(over.length)} that ${over.length === 1 ? "has" : "have"} settled will be submitted once more, as new jobs that wait for the same jobs as before.`}
          run={() => together(over, retryJob, "were submitted once more")}
          done={`${counted(over.length)} submitted once more`}
          then={finish}
        />
      )}
      <Copy text={commands(open, over)} title="Copy as commands" />
      <button type="button" class="quiet" onClick={clear}>
        Select none
      </button>
    </div>
  );
}

/** A line for each job: what the buttons do. */
function commands(open: readonly string[], over: readonly string[]): string {
  const lines = [...open.map((id) => ["cancel", id]), ...over.map((id) => ["retry", id])];
  return lines.map((words) => command("penstock", "job", ...words)).join("\n");
}
