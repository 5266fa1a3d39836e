/** The audit log: what operators did, to what, and how; newest first. Its filters are those of `penstock audit list`. */

import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { pageOf, SINCE, sinceOf } from "../audit";
import { Copy } from "../parts/action";
import { Choice, useFilters, Wanted } from "../parts/filters";
import { ForOperators } from "../parts/gate";
import { Page, Shown } from "../parts/page";
import { More, usePages } from "../parts/pages";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { userPath } from "../users";
import "../style/audit.css";

type Entry = Schemas["AuditView"];

const COLUMNS: Column<Entry>[] = [
  { title: "When", cell: (entry) => <When at={entry.time} /> },
  { title: "Who", cell: (entry) => <By name={entry.by} /> },
  { title: "Did", cell: (entry) => <strong class="did">{entry.did}</strong> },
  { title: "What", cell: (entry) => <What of={entry} /> },
  { title: "How", cell: (entry) => <Detail text={entry.detail} /> },
];

export default function Audit() {
  return (
    <ForOperators title="Audit log">
      <Log />
    </ForOperators>
  );
}

function Log() {
  const [filters, change] = useFilters();
  const { who, since } = filters;
  const entries = usePages<Entry>(`audit ${who} ${since}`, (page, signal) => {
    const from = sinceOf(since, Date.now());
    const query = { ...(who && { who }), ...(from && { since: from }), ...(page && { page }) };
    return api.GET("/v1/audit", { params: { query }, ...(signal && { signal }) });
  });
  const command = ["penstock audit list", since && `--since ${since}`, who && `--who ${who}`].filter(Boolean).join(" ");
  return (
    <Page title="Audit log" actions={<Copy text={command} title="As command" />}>
      <div class="filters">
        <Wanted label="Who" value={who} onChange={(value) => change("who", value)} hint="a user's name" />
        <Choice label="Since" value={since} options={Object.keys(SINCE)} onChange={(value) => change("since", value)} />
      </div>
      <Shown of={entries}>
        {() => (
          <Table
            caption="What operators did"
            columns={COLUMNS}
            rows={entries.rows}
            id={(entry) => entry.id}
            empty="Nothing like that was done. Entries are kept for 400 days."
          />
        )}
      </Shown>
      <More load={entries.more} />
    </Page>
  );
}

/** A user; "(AWS credentials)" is none. */
function By({ name }: { name: string }) {
  return name.startsWith("(") ? <>{name}</> : <Link href={userPath(name)}>{name}</Link>;
}

function What({ of }: { of: Entry }) {
  const page = pageOf(of.what, of.did);
  return page ? <Link href={page}>{of.what}</Link> : <>{of.what}</>;
}

const SHORT = 160;

function Detail({ text }: { text: string }) {
  if (text.length <= SHORT) return <span class="detail">{text}</span>;
  return (
    <details>
      <summary>{text.slice(0, SHORT)}…</summary>
      <span class="detail">{text}</span>
    </details>
  );
}
