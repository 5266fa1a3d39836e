/** When something of a pool may come free: until when a job has a slot, and when one that waits may start. */

import { useState } from "preact/hooks";

import { api, type Schemas } from "../../api/client";
import { useWatch } from "../../api/watch";
import { Linked } from "../linked";
import { exact, useNow, When } from "../time";

type Slot = Schemas["SlotView"];

/** How many seconds an estimate is shown before it is asked for again. */
const ESTIMATED_EVERY = 20;

/** Until when a slot is in use at the latest: what keeps its unit says so, or the time limit of its job. */
export function Until({ slot, isAsked }: { slot: Slot; isAsked: boolean }) {
  if (slot.kept) return <Kept of={slot.kept} />;
  if (slot.quarantine) return <>until an operator releases it</>;
  if (!slot.job || slot.state !== "held") return <span class="faint">–</span>;
  return (
    <OnDemand isAsked={isAsked} title="Until when?">
      {() => <TimeLimit job={slot.job as string} attempt={slot.attempt} />}
    </OnDemand>
  );
}

const Kept = ({ of }: { of: Schemas["KeptView"] }) => (
  <span title={of.says}>{of.until ? <When at={of.until} /> : of.ends_when}</span>
);

/** When a job's time limit ends its script. It is asked for until the script has begun: after that it stays as it is. */
function TimeLimit({ job, attempt }: { job: string; attempt: number | null }) {
  const now = useNow();
  const { value, error } = useWatch(
    `until ${job} ${attempt}`,
    (signal) => api.GET("/v1/jobs/{job}", { params: { path: { job } }, signal }),
    { isLast: ({ times }) => times.started !== null },
  );
  if (error && !value) return <span class="faint">not shown to you</span>;
  if (!value) return <span class="faint">…</span>;
  if (!value.times.started) return <span class="faint">its script has not begun</span>;
  const end = Date.parse(value.times.started) + value.timeout * 1000;
  if (end < now) return <span class="faint">its time limit is over</span>;
  return (
    <span title={`Its script may run until ${exact(end)}. It may end at any time before.`}>
      <When at={new Date(end).toISOString()} /> at the latest
    </span>
  );
}

/** When a job that waits may have all that it needs, and what that is estimated from. */
export function Expected({ job, isAsked }: { job: string; isAsked: boolean }) {
  return (
    <OnDemand isAsked={isAsked} title="When?">
      {() => <Estimate job={job} />}
    </OnDemand>
  );
}

function Estimate({ job }: { job: string }) {
  const { value, error } = useWatch(
    `why ${job}`,
    (signal) => api.GET("/v1/jobs/{job}/why", { params: { path: { job } }, signal }),
    { every: ESTIMATED_EVERY },
  );
  if (error && !value) return <span class="faint">not shown to you</span>;
  if (!value) return <span class="faint">…</span>;
  const note = value.expected_start ? value.basis : value.unblocks && `once ${value.unblocks}`;
  return (
    <>
      {value.expected_start ? <When at={value.expected_start} /> : "not known"}
      {note && (
        <small>
          <Linked text={note} />
        </small>
      )}
    </>
  );
}

/** What costs a request: shown at once where `isAsked`, otherwise when its button is pressed. */
function OnDemand({ isAsked, title, children }: { isAsked: boolean; title: string; children: () => preact.ComponentChild }) {
  const [isPressed, setPressed] = useState(false);
  if (isAsked || isPressed) return <>{children()}</>;
  return (
    <button type="button" class="quiet" onClick={() => setPressed(true)}>
      {title}
    </button>
  );
}
