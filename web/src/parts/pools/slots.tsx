/** Who has the slots of a pool: as a short list for a card, and as a table for the pool's page. */

import { useState } from "preact/hooks";

import type { Schemas } from "../../api/client";
import { JobName, UnitName } from "../names";
import { State } from "../state";
import { Table, type Column } from "../table";
import { Lasts, When } from "../time";
import { Until } from "./expected";
import { inOrder } from "./pressure";

type Slot = Schemas["SlotView"];

/** How many slots are shown at first. */
const SHOWN = 60;

const columns = (hasLabels: boolean, hasNotes: boolean): Column<Slot>[] => [
  { title: "Slot", cell: (slot) => <b>{slot.slot}</b> },
  ...(hasLabels ? [{ title: "Labels", cell: (slot: Slot) => labelled(slot) }] : []),
  { title: "State", cell: (slot) => <State of={slot.state} /> },
  { title: "Who", cell: (slot) => <Who slot={slot} /> },
  { title: "Since", cell: (slot) => <When at={slot.since} /> },
  { title: "Until", cell: (slot) => <Until slot={slot} /> },
  { title: "Unit", cell: (slot) => <UnitName id={slot.unit} />, isMinor: true },
  ...(hasNotes ? [{ title: "Notes", cell: (slot: Slot) => <Notes slot={slot} /> }] : []),
  { title: "Fence", cell: (slot) => slot.fence, isNumber: true, isMinor: true },
];

/** All slots of a pool. */
export function Slots({ of }: { of: Schemas["PoolView"] }) {
  const [isWhole, setWhole] = useState(false);
  const slots = inOrder(of);
  return (
    <>
      <Table
        caption="Slots"
        columns={columns(
          slots.some(({ labels }) => Object.keys(labels).length > 0),
          slots.some(({ kept, quarantine, host }) => kept || quarantine || host),
        )}
        rows={isWhole ? slots : slots.slice(0, SHOWN)}
        id={(slot) => slot.slot}
        empty="It has no slots: it is an amount, or its limit is 0."
        isMarked={(slot) => slot.quarantine !== null && slot.quarantine !== undefined}
      />
      {slots.length > SHOWN && !isWhole && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {slots.length} slots
        </button>
      )}
    </>
  );
}

/** The labels of the thing that a slot is of, by which jobs choose. */
function labelled({ labels }: Slot) {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");
}

/** Who has a slot; in words where no job does. */
export function Who({ slot }: { slot: Slot }) {
  if (slot.job) return <JobName id={slot.job} name={slot.job_name} owner={slot.job_owner} />;
  if (slot.kept?.by) return <>{slot.kept.by}</>;
  if (slot.quarantine) return <>a unit in quarantine</>;
  return <span class="faint">{slot.state === "held" ? "an operator" : "nobody"}</span>;
}

/** What is not as usual: a hold, a quarantine, a host that is away. */
export function Notes({ slot: { kept, quarantine, host } }: { slot: Slot }) {
  const notes = [
    kept && kept.says,
    quarantine && !kept && `in quarantine: ${quarantine.reason}`,
    host && !host.is_there && (host.since ? "its host is away" : "its host was never heard of"),
  ].filter((note) => note);
  if (notes.length === 0 && !host) return <span class="faint">–</span>;
  return (
    <>
      {notes.join("; ")}
      {host?.is_there && (
        <>
          its host is there, for <Lasts from={host.since} />
        </>
      )}
      {host && !host.is_there && host.since && (
        <>
          , for <Lasts from={host.since} />
        </>
      )}
      {host?.power && <>; {host.power}</>}
    </>
  );
}
