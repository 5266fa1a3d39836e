/** Pools that are not as the configuration says, and those that operators paused. */

import { api, ask, type Schemas } from "../api/client";
import { Action, Copy } from "../parts/action";
import { PoolName } from "../parts/names";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { Cut, Section } from "./section";
import type { Attention } from "./watch";

type Pool = Schemas["PausedPool"];
type Drift = Schemas["DriftView"];

interface PausedProps {
  found: Attention["paused"];
  then: () => void;
}

export function Paused({ found, then }: PausedProps) {
  const rows = found.items;
  const columns: Column<Pool>[] = [
    { title: "Pool", cell: (pool) => <PoolName of={pool.pool} /> },
    { title: "Waiting", cell: (pool) => pool.waiting, isNumber: true },
    { title: "Held", cell: (pool) => `${pool.held} of ${pool.limit}`, isNumber: true },
    { title: "Paused by", cell: (pool) => pool.by ?? <span class="faint">not known</span> },
    { title: "When", cell: (pool) => <When at={pool.at} /> },
    { title: "Why", cell: (pool) => pool.reason || <span class="faint">–</span> },
    { title: "Actions", cell: (pool) => <Resume pool={pool.pool} then={then} /> },
  ];
  return (
    <Section
      id="paused"
      title="Paused pools"
      runbook="operations#oldestwait"
      nothing={rows.length === 0 ? "No pool is paused." : undefined}
    >
      {rows.length > 0 && <Table caption="Paused pools" columns={columns} rows={rows} id={(pool) => pool.pool} empty="" />}
      <Cut of={found} />
    </Section>
  );
}

function Resume({ pool, then }: { pool: string; then: () => void }) {
  const [sort = "", name = ""] = pool.split("/");
  return (
    <div class="actions">
      <Action
        title="Resume"
        run={() => ask(api.POST("/v1/pools/{sort}/{name}/resume", { params: { path: { sort, name } } }))}
        done={`${pool} grants again`}
        then={then}
      />
      <Copy text={`penstock pool resume ${pool}`} title="As command" />
    </div>
  );
}

const DRIFT_COLUMNS: Column<Drift>[] = [
  { title: "Pool", cell: (each) => <PoolName of={each.pool} /> },
  { title: "Now", cell: (each) => each.change },
  { title: "By", cell: (each) => each.by ?? <span class="faint">the audit log does not say</span> },
  { title: "When", cell: (each) => <When at={each.at} /> },
  { title: "The next configuration", cell: (each) => (each.reset ? "takes it back" : "leaves it so") },
];

export const DriftTable = ({ rows }: { rows: Drift[] }) => (
  <Table
    caption="Changed by hand"
    columns={DRIFT_COLUMNS}
    rows={rows}
    id={(each) => `${each.pool} ${each.change}`}
    empty=""
  />
);

export function DriftSection({ found }: { found: Attention["drift"] }) {
  const rows = found.items;
  return (
    <Section
      id="drift"
      title="Changed by hand"
      runbook="site#see-changes-before-they-happen"
      nothing={rows.length === 0 ? "All pools are as the configuration says." : undefined}
    >
      {rows.length > 0 && <DriftTable rows={rows} />}
      <Cut of={found} />
    </Section>
  );
}
