/** The list of workers or of resources, with filters that stand in the address. */

import { Copy } from "../action";
import { Choice, useFilters, Wanted } from "../filters";
import { ForOperators } from "../gate";
import { JobName, PoolName, UnitName } from "../names";
import { Page, Shown } from "../page";
import { More, usePages } from "../pages";
import { State } from "../state";
import { Table, type Column } from "../table";
import { Lasts } from "../time";
import { fits, ONLY, STATES, valuesOf } from "./filter";
import { type Kind, listUnits, newsOf, poolOf, type Unit, WORDS } from "./kinds";
import { Marks } from "./marks";
import "../../style/units.css";

const columns = (kind: Kind): Column<Unit>[] => [
  { title: "State", cell: (unit) => <State of={unit.state} /> },
  { title: "Unit", cell: (unit) => <UnitName id={unit.id} /> },
  { title: WORDS[kind].type, cell: (unit) => <PoolName of={poolOf(unit)} /> },
  { title: "Slot", cell: (unit) => unit.slot },
  { title: "Job", cell: (unit) => <JobName id={unit.job} name={unit.job_name} owner={unit.job_owner} /> },
  { title: "For", cell: (unit) => <Lasts from={unit.since} />, isNumber: true },
  { title: "Marks", cell: (unit) => <Marks of={unit} /> },
  { title: "Next", cell: (unit) => unit.next_step, isMinor: true },
  { title: WORDS[kind].maker, cell: (unit) => unit.maker, isMinor: true },
];

export function UnitList({ kind }: { kind: Kind }) {
  const words = WORDS[kind];
  return (
    <ForOperators title={words.title}>
      <Page title={words.title} actions={<Copy text={`penstock ${words.one} list`} title="Copy as command" />}>
        <Units kind={kind} />
      </Page>
    </ForOperators>
  );
}

function Units({ kind }: { kind: Kind }) {
  const [filters, change] = useFilters();
  const units = usePages<Unit>(kind, (page, signal) => listUnits(kind, page, signal), {
    news: ({ items }) => items.map(newsOf),
  });
  const shown = units.rows.filter((unit) => fits(unit, filters));
  const choice = (label: string, name: string, options: readonly string[]) => (
    <Choice label={label} value={filters[name]} options={options} onChange={(value) => change(name, value)} />
  );
  return (
    <>
      <div class="filters">
        {choice("State", "state", STATES)}
        {choice(WORDS[kind].type, "type", valuesOf(units.rows, "type"))}
        {choice(WORDS[kind].maker, "maker", valuesOf(units.rows, "maker"))}
        <Wanted label="Job" value={filters["job"]} onChange={(value) => change("job", value)} hint="name, owner or id" />
        {choice("Only", "only", Object.keys(ONLY))}
      </div>
      <Shown of={units}>
        {() => (
          <>
            <p class="faint">{counted(shown.length, units.rows.length, WORDS[kind].title.toLowerCase(), units.more !== undefined)}</p>
            <Table
              caption={WORDS[kind].title}
              columns={columns(kind)}
              rows={shown}
              id={(unit) => unit.id}
              empty={units.more ? "None of those that were loaded looks like that." : "None looks like that."}
              isMarked={(unit) => unit.quarantine !== null || unit.broken !== null}
            />
          </>
        )}
      </Shown>
      <More load={units.more} />
    </>
  );
}

/** How many are shown, of how many that were loaded. Filters look only at those. */
function counted(shown: number, loaded: number, what: string, isMore: boolean): string {
  const some = `${shown === loaded ? "" : `${shown} of `}${loaded} ${loaded === 1 ? what.slice(0, -1) : what}`;
  return isMore ? `${some} that were loaded; there are more` : some;
}
