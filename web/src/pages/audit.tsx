/** The audit log: what operators did, to what, and how; newest first. Its filters are those of `penstock audit list`. */

import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { type AuditFilters, commandOf, DEEDS, pageOf, problemOf, queryOf } from "../audit";
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
  const problem = problemOf(filters, Date.now());
  const set = (name: string) => (value: string) => change(name, value.trim());
  return (
    <Page title="Audit log" actions={<Copy text={commandOf(filters, Date.now())} title="As command" />}>
      <div class="filters" role="search" aria-label="Filter the audit log">
        <Wanted label="Who" value={filters.who} onChange={set("who")} hint="a user's name" />
        <Choice label="Did" value={filters.did} options={DEEDS} onChange={set("did")} />
        {/* a space at its end is meant: `job ` are all jobs */}
        <Wanted label="What" value={filters.what} onChange={(value) => change("what", value)} hint="pool resource/bench" />
        <Wanted label="Since" value={filters.since} onChange={set("since")} hint="7d, today" />
        <Wanted label="Until" value={filters.until} onChange={set("until")} hint="2026-01-31" />
      </div>
      {problem ? (
        <p class="problem" role="alert">
          {problem}
        </p>
      ) : (
        <Entries of={filters} />
      )}
    </Page>
  );
}

function Entries({ of }: { of: AuditFilters }) {
  const { who, did, what, since, until } = of;
  const entries = usePages<Entry>(JSON.stringify(["audit", who, did, what, since, until]), (page, signal) =>
    api.GET("/v1/audit", { params: { query: queryOf(of, Date.now(), page) }, ...(signal && { signal }) }),
  );
  return (
    <>
      <Shown of={entries}>
        {() => (
          <Table
            caption="What operators did"
            columns={COLUMNS}
            rows={entries.rows}
            id={(entry) => entry.id}
            empty={
              entries.more
                ? "Nothing like that among the newest entries. Show more looks at older ones."
                : "Nothing like that was done. Entries are kept for 400 days."
            }
          />
        )}
      </Shown>
      <More load={entries.more} />
    </>
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
