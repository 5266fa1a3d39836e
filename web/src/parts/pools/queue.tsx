/** The queue of a pool: who comes next, and when. */

import { useState } from "preact/hooks";

import type { Schemas } from "../../api/client";
import { JobName } from "../names";
import { Table, type Column } from "../table";
import { Lasts, When } from "../time";
import { Expected } from "./expected";

type Queued = Schemas["QueuedView"];

/** How many are shown at first. */
const SHOWN = 50;

const BEFORE: Column<Queued>[] = [
  { title: "Place", cell: (one) => <b>{one.position}</b> },
  { title: "Job", cell: (one) => <JobName id={one.job} name={one.job_name} owner={one.job_owner} /> },
  { title: "Waits for", cell: (one) => <Lasts from={one.since} /> },
  { title: "Expected", cell: (one) => <Expected of={one} /> },
  { title: "Priority", cell: (one) => one.priority, isNumber: true, isMinor: true },
];
const CHOICE: Column<Queued> = { title: "Chooses", cell: (one) => one.choice || <span class="faint">any</span> };
const TURN: Column<Queued> = { title: "Turn", cell: (one) => <When at={one.turn} />, isMinor: true };

/** The queue. `waiting`: how many are in it, of whom the service lists the first 1,000. */
export function Queue({ of, waiting }: { of: readonly Queued[]; waiting: number }) {
  const [isWhole, setWhole] = useState(false);
  const hasTurns = of.some((one) => one.turn);
  const chooses = of.some((one) => one.choice);
  return (
    <>
      <Table
        caption="Queue"
        columns={[...BEFORE, ...(chooses ? [CHOICE] : []), ...(hasTurns ? [TURN] : [])]}
        rows={isWhole ? of : of.slice(0, SHOWN)}
        id={(one) => `${one.job} ${one.attempt}`}
        empty="Nobody waits for it."
      />
      {of.length > SHOWN && !isWhole && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {of.length}
        </button>
      )}
      {waiting > of.length && (
        <p class="faint">
          {waiting} wait; the first {of.length} are listed.
        </p>
      )}
    </>
  );
}
