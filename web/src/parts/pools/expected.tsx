/** When something of a pool may come free: until when a job has a slot, and when one that waits may get it. */

import type { Schemas } from "../../api/client";
import { exact, useNow, When } from "../time";

type Slot = Schemas["SlotView"];

/** Until when a slot is in use at the latest: what keeps its unit says so, or the time limit of its job. */
export function Until({ slot }: { slot: Slot }) {
  if (slot.kept) return <Kept of={slot.kept} />;
  if (slot.quarantine) return <>until an operator releases it</>;
  if (!slot.job || slot.state !== "held") return <span class="faint">–</span>;
  return slot.until ? <TimeLimit at={slot.until} /> : <span class="faint">its script does not run</span>;
}

const Kept = ({ of }: { of: Schemas["KeptView"] }) => (
  <span title={of.says}>{of.until ? <When at={of.until} /> : of.ends_when}</span>
);

/** When a job's time limit ends its script. */
function TimeLimit({ at }: { at: string }) {
  const isOver = Date.parse(at) < useNow();
  if (isOver) return <span class="faint">its time limit is over</span>;
  return (
    <span title={`Its script may run until ${exact(at)}. It may end at any time before.`}>
      <When at={at} /> at the latest
    </span>
  );
}

/** When a job that waits may get what it waits for here. The service estimates it for the first of a queue. */
export function Expected({ of: { expected } }: { of: Schemas["QueuedView"] }) {
  return expected ? <When at={expected} /> : <span class="faint">not known</span>;
}
