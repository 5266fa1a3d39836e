/** The pools, those that are most asked for first: who has what, until when, and who is next. */

import { api } from "../api/client";
import { useWatch } from "../api/watch";
import { Copy } from "../parts/action";
import { Choice, useFilters, Wanted } from "../parts/filters";
import { Page, Shown } from "../parts/page";
import { PoolCard } from "../parts/pools/card";
import { byPressure, sortOf } from "../parts/pools/pressure";

/** How many pools with named slots are open at first: each that is open is asked for by itself. */
const OPEN = 6;

const ONLY = ["waited for", "free", "paused"] as const;

export default function Pools() {
  const [filters, change] = useFilters();
  const pools = useWatch("pools", (signal) => api.GET("/v1/pools", { signal }));
  const all = [...(pools.value?.items ?? [])].sort(byPressure);
  const wanted = (filters["name"] ?? "").toLowerCase();
  const shown = all
    .filter(({ pool }) => pool.toLowerCase().includes(wanted))
    .filter(({ pool }) => !filters["sort"] || sortOf(pool) === filters["sort"])
    .filter((pool) => fits(pool, filters["only"]));
  const open = new Set(shown.filter(({ kind }) => kind === "named").slice(0, OPEN).map(({ pool }) => pool));
  const sorts = [...new Set(all.map(({ pool }) => sortOf(pool)))].sort();
  return (
    <Page title="Pools" actions={<Copy text="penstock pool list" title="Copy as command" />}>
      <div class="filters pool-filters">
        <Wanted label="Name" value={filters["name"]} onChange={(value) => change("name", value)} hint="bench" />
        <Choice label="Sort" value={filters["sort"]} options={sorts} onChange={(value) => change("sort", value)} />
        <Choice label="Only" value={filters["only"]} options={ONLY} onChange={(value) => change("only", value)} />
      </div>
      <Shown of={pools}>
        {() => (
          <>
            <p class="faint">
              {shown.length === all.length ? `${all.length} pools` : `${shown.length} of ${all.length} pools`}, those with
              the most who wait for each slot first.
            </p>
            <div class="pool-cards">
              {shown.map((pool) => (
                <PoolCard key={pool.pool} of={pool} isOpen={open.has(pool.pool)} />
              ))}
            </div>
          </>
        )}
      </Shown>
    </Page>
  );
}

function fits({ waiting, free, paused }: { waiting: number; free: number; paused: boolean }, only: string | undefined) {
  if (only === "waited for") return waiting > 0;
  if (only === "free") return free > 0 && !paused;
  return only !== "paused" || paused;
}
