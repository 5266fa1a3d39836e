/** What operators did to one thing, newest first: who, when, how. For operators only. */

import { useEffect, useRef } from "preact/hooks";

import { api, type Schemas } from "../api/client";
import { Shown } from "./page";
import { More, usePages } from "./pages";
import { Table, type Column } from "./table";
import { When } from "./time";

type Entry = Schemas["AuditView"];

/** Seconds. What operators do is seldom, and it stands beside what is watched. */
const SELDOM = 300;

const COLUMNS: Column<Entry>[] = [
  { title: "When", cell: (entry) => <When at={entry.time} /> },
  { title: "Who", cell: (entry) => entry.by },
  { title: "Did", cell: (entry) => entry.did },
  { title: "How, or why", cell: (entry) => entry.detail || <span class="faint">–</span> },
];

interface Props {
  /** Such as `pool resource/bench`. The service lists what begins so; others are left out here. */
  what: string;
  /** What of the thing is another once an operator has done something: then the entries are asked for anew. */
  changes: unknown;
}

/** The entries about one thing. */
export function Audit({ what, changes }: Props) {
  const entries = usePages<Entry>(
    `audit ${what}`,
    (page, signal) => api.GET("/v1/audit", { params: { query: { what, ...(page && { page }) } }, ...(signal && { signal }) }),
    { every: SELDOM },
  );
  const state = JSON.stringify(changes);
  const before = useRef(state);
  useEffect(() => {
    if (before.current !== state) entries.refresh();
    before.current = state;
  }, [state]);
  return (
    <Shown of={entries}>
      {() => (
        <>
          <Table
            caption={`What operators did to ${what}`}
            columns={COLUMNS}
            rows={entries.rows.filter((entry) => entry.what === what)}
            id={(entry) => entry.id}
            empty={entries.more ? "There is no entry, as far as was looked." : "There is no entry."}
          />
          <More load={entries.more} />
        </>
      )}
    </Shown>
  );
}
