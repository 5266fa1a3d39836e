/** What jobs cost, row by row, and all of them together. Currencies are never added up. */

import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";

import type { Schemas } from "../api/client";
import { PoolName } from "../parts/names";
import { Table, type Column } from "../parts/table";
import { percent } from "../shares";
import { part, sum } from "./money";
import { type Asked, pricesPath } from "./query";

type Sum = Schemas["SumView"];

const TITLES = { owner: "Owner", target: "Target", pool: "Pool", day: "Day (UTC)" } as const;

/** The rows of each currency, in the order in which they came. */
export function byCurrency(rows: readonly Sum[]): [string, Sum[]][] {
  const currencies = [...new Set(rows.map((each) => each.currency))];
  return currencies.map((currency) => [currency, rows.filter((each) => each.currency === currency)]);
}

interface Props {
  rows: readonly Sum[];
  currency: string;
  asked: Asked;
}

/** The sums of one currency. */
export function Sums({ rows, currency, asked }: Props) {
  return (
    <section class="part" aria-label={`Prices in ${currency}`}>
      <Total rows={rows} currency={currency} by={asked.by} />
      <Table
        caption={`What jobs cost by ${asked.by}, in ${currency}`}
        columns={columnsOf(rows, asked)}
        rows={rows}
        id={(row) => row.name}
        empty=""
      />
    </section>
  );
}

/** What is of no pool; all jobs count there, and each in its pools besides. */
const OTHER = "other";

const ofAll = (rows: readonly Sum[]): number => rows.find((row) => row.name === OTHER)?.jobs ?? 0;

function Total({ rows, currency, by }: Omit<Props, "asked"> & { by: Asked["by"] }) {
  const of = (name: "total" | "unused") => sum(rows.map((row) => row[name]));
  const [total, unused] = [of("total"), of("unused")];
  const jobs = by === "pool" ? ofAll(rows) : rows.reduce((all, row) => all + row.jobs, 0);
  return (
    <p data-total={total} data-unused={unused} data-jobs={jobs}>
      {jobs === 1 ? "One job" : `${jobs} jobs`} cost{" "}
      <strong>
        {total} {currency}
      </strong>
      , of which {unused} ({percent(part(unused, total))}) was for what was held idle: what they had while their scripts did
      not run.
    </p>
  );
}

function columnsOf(rows: readonly Sum[], asked: Asked): Column<Sum>[] {
  const most = Math.max(...rows.map((row) => Number(row.total)));
  const money = (title: string, of: (row: Sum) => string): Column<Sum> => ({ title, cell: of, isNumber: true });
  return [
    { title: TITLES[asked.by], cell: (row) => <Name of={row.name} asked={asked} /> },
    { title: "Jobs", cell: (row) => row.jobs, isNumber: true },
    money("Cost", (row) => row.total),
    money("Of it idle", (row) => row.unused),
    { title: "Idle part", cell: (row) => percent(part(row.unused, row.total)), isNumber: true },
    { title: "Cost and idle", cell: (row) => <Bar of={row} most={most} />, isMinor: true },
    money("Workers", (row) => row.worker),
    money("Resources", (row) => row.resources),
    money("The service", (row) => row.control),
    money("Files kept", (row) => row.stored),
    money("Bytes sent", (row) => row.sent),
  ];
}

/** What a row is of: an owner leads to its days, a target to its jobs, a pool to its page. */
function Name({ of, asked }: { of: string; asked: Asked }): ComponentChildren {
  if (asked.by === "owner") return <Link href={pricesPath({ ...asked, by: "day", owner: of })}>{of}</Link>;
  if (asked.by === "target") return <Link href={`/?target=${encodeURIComponent(of)}`}>{of}</Link>;
  if (asked.by === "day") return <time dateTime={of}>{of}</time>;
  if (of === OTHER) return <span title="What belongs to no pool: the service and files">{of}</span>;
  return <PoolName of={of} />;
}

/** A row's cost beside the dearest row's, the idle part hatched. */
function Bar({ of, most }: { of: Sum; most: number }) {
  const length = most > 0 ? Number(of.total) / most : 0;
  const idle = part(of.unused, of.total);
  return (
    <div class="price-bar" role="img" aria-label={`${of.total}, of it ${of.unused} idle`}>
      <span style={{ width: `${length * (1 - idle) * 100}%` }} />
      <span class="idle" style={{ width: `${length * idle * 100}%` }} />
    </div>
  );
}
