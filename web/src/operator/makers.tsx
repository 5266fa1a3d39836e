/** Factories and wells: what leaks, what is misconfigured, of what there is none, and what their drivers said. */

import { UnitName } from "../parts/names";
import { RunbookLink } from "../parts/runbook";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { placeOf } from "./scopes";
import { Cut, Section } from "./section";
import type { Attention, CoolDown } from "./watch";

type Compared = Attention["compared"];
type Maker = Compared["items"][number];

/** A factory or well in words, such as `factory aws`. */
const nameOf = ({ maker }: { maker: string }): string => maker.replace("/", " ");

/** Always shown, also when nothing leaks: that it was looked is a part of the answer. */
export function Leaks({ found }: { found: Compared }) {
  const { strays, missing } = found;
  const columns: Column<Maker>[] = [
    { title: "Made by", cell: nameOf },
    { title: "Strays", cell: (maker) => <Ids of={maker.compared?.strays} />, isNumber: true },
    { title: "Missing", cell: (maker) => <Ids of={maker.compared?.missing} />, isNumber: true },
    { title: "Compared", cell: (maker) => <Compared at={maker.compared?.at} /> },
    { title: "Lists that failed since", cell: (maker) => maker.compared?.failures ?? "–", isNumber: true },
  ];
  return (
    <Section
      id="leaks"
      title="Leaks"
      runbook="operations#strays"
      nothing={strays + missing === 0 ? "What exists outside is what Penstock knows: 0 strays, 0 missing." : undefined}
    >
      <p class="faint">
        A stray exists outside and Penstock does not know it; what is missing existed there and does not any more. Both are
        dealt with after some lists, which come every three minutes.
      </p>
      <Table
        caption="Comparisons with what exists outside"
        columns={columns}
        rows={found.items}
        id={nameOf}
        empty="The site has no factory and no well."
      />
      <Cut of={found} />
    </Section>
  );
}

/** Lists come every three minutes. When none came for ten, nothing may look any more: the sweep or its list hangs. */
const LATE = 600_000;

function Compared({ at }: { at: string | null | undefined }) {
  if (!at) return <>not yet</>;
  return (
    <span>
      <When at={at} />
      {Date.now() - Date.parse(at) > LATE && (
        <>
          {" "}
          <strong class="wait">‖ late</strong> <RunbookLink of="operations#sweepstopped" what="the sweep" />
        </>
      )}
    </span>
  );
}

function Ids({ of }: { of: string[] | undefined }) {
  if (!of) return <span class="faint">–</span>;
  if (of.length === 0) return <>0</>;
  return (
    <details>
      <summary class="bad">! {of.length}</summary>
      <ul class="ids">
        {of.map((id) => (
          <li key={id} class="mono">
            {id}
          </li>
        ))}
      </ul>
    </details>
  );
}

const WRONG_COLUMNS: Column<CoolDown>[] = [
  { title: "Made by", cell: nameOf },
  { title: "What", cell: (each) => <strong class="bad">! {each.cause}</strong> },
  { title: "For", cell: (each) => each.scope || "everything" },
  { title: "It says", cell: (each) => each.why },
  { title: "Since", cell: (each) => <When at={each.since} /> },
  { title: "Tried", cell: (each) => each.tried, isNumber: true },
  { title: "Again", cell: (each) => <Again of={each} /> },
];

export function Misconfigured({ found }: { found: Attention["misconfigured"] }) {
  const rows = found.items;
  return (
    <Section
      id="misconfigured"
      title="Misconfigured, or broken"
      runbook="operations#misconfigured"
      nothing={rows.length === 0 ? "No factory and no well reports wrong settings or broken workers." : undefined}
    >
      {rows.length > 0 && (
        <Table caption="What only an operator can mend" columns={WRONG_COLUMNS} rows={rows} id={idOf} empty="" />
      )}
      <Cut of={found} />
    </Section>
  );
}

const idOf = (each: CoolDown): string => `${each.maker} ${each.scope}`;

export function Unlisted({ found }: { found: Compared }) {
  const rows = found.items.filter((each) => each.compared && each.compared.failures > 0);
  const columns: Column<Maker>[] = [
    { title: "Made by", cell: nameOf },
    { title: "Lists that failed", cell: (maker) => maker.compared?.failures, isNumber: true },
    { title: "Why", cell: (maker) => maker.compared?.why },
    { title: "Last list", cell: (maker) => (maker.compared?.at ? <When at={maker.compared.at} /> : "none yet") },
  ];
  return (
    <Section
      id="unlisted"
      title="Not listed"
      runbook="operations#unlisted"
      nothing={rows.length === 0 ? "The last list of each factory and well succeeded." : undefined}
    >
      {rows.length > 0 && (
        <Table caption="Factories and wells that could not be listed" columns={columns} rows={rows} id={nameOf} empty="" />
      )}
    </Section>
  );
}

const SHORT_COLUMNS: Column<CoolDown>[] = [
  { title: "Type", cell: (each) => <strong>{placeOf(each.scope).type}</strong> },
  { title: "Zone", cell: (each) => placeOf(each.scope).place || <span class="faint">all</span> },
  { title: "Of", cell: (each) => [nameOf(each), placeOf(each.scope).of].filter(Boolean).join(", ") },
  { title: "Cause", cell: (each) => each.cause },
  { title: "It says", cell: (each) => <span title={each.scope}>{each.why}</span> },
  { title: "Since", cell: (each) => <When at={each.since} /> },
  { title: "Tried", cell: (each) => each.tried, isNumber: true },
  { title: "Again", cell: (each) => <Again of={each} /> },
];

export function Capacity({ found }: { found: Attention["short"] }) {
  const rows = found.items.toSorted((one, other) => one.scope.localeCompare(other.scope));
  return (
    <Section
      id="capacity"
      title="No capacity"
      runbook="capacity#cool-downs"
      nothing={rows.length === 0 ? "Nothing cools down: no provider is short of anything that was asked for." : undefined}
    >
      {rows.length > 0 && (
        <Table caption="Cool-downs by type and zone" columns={SHORT_COLUMNS} rows={rows} id={idOf} empty="" />
      )}
      <Cut of={found} />
    </Section>
  );
}

/** When a cool-down is tried again, or who tries it now. */
function Again({ of: { probe, until } }: { of: CoolDown }) {
  if (probe) {
    return (
      <span>
        <UnitName id={probe} /> tries now
      </span>
    );
  }
  if (Date.parse(until) <= Date.now()) return <>by the next that needs it</>;
  return <When at={until} />;
}

type Failed = Attention["failures"]["items"][number];

const FAILED_COLUMNS: Column<Failed>[] = [
  { title: "Made by", cell: nameOf },
  { title: "Code", cell: (each) => <code>{each.code}</code> },
  { title: "Times", cell: (each) => each.count, isNumber: true },
  { title: "It said last", cell: (each) => each.message },
  { title: "First", cell: (each) => <When at={each.first} />, isMinor: true },
  { title: "Last", cell: (each) => <When at={each.last} /> },
];

export function Failures({ found }: { found: Attention["failures"] }) {
  const rows = found.items;
  return (
    <Section
      id="failures"
      title="What drivers reported"
      runbook="operations#unknownerrors"
      nothing={rows.length === 0 ? "No driver reported a failure within a week." : undefined}
    >
      {rows.length > 0 && (
        <Table
          caption="Failures of drivers"
          columns={FAILED_COLUMNS}
          rows={rows}
          id={(each) => `${each.maker} ${each.code}`}
          empty=""
        />
      )}
      <Cut of={found} />
    </Section>
  );
}
