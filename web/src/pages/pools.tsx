/** The pools, those that are most asked for first: who has what, until when, and who is next. */

import { useEffect, useRef, useState } from "preact/hooks";

import { api } from "../api/client";
import { useWatch, type Watched } from "../api/watch";
import { Copy } from "../parts/action";
import { Choice, useFilters, Wanted } from "../parts/filters";
import { Page, Shown } from "../parts/page";
import { newsOf, PoolCard } from "../parts/pools/card";
import { byPressure, sortOf } from "../parts/pools/pressure";

/** How many pools with named slots are open at first. */
const OPEN = 6;
/** How many the service shows whole at once. */
const WHOLE_MOST = 20;

/** What was opened and closed by hand, by pool, until the page is loaded anew. */
const chosen = new Map<string, boolean>();

const ONLY = ["waited for", "free", "paused"] as const;

export default function Pools() {
  const [filters, change] = useFilters();
  const [whole, setWhole] = useState("");
  const pools = useKept(
    useWatch(`pools ${whole}`, (signal) => api.GET("/v1/pools", { params: { query: whole ? { whole } : {} }, signal }), {
      news: ({ items }) => items.map(newsOf),
    }),
  );
  const [, draw] = useState(0);
  const all = [...(pools.value?.items ?? [])].sort(byPressure);
  const part = (filters["name"] ?? "").toLowerCase();
  const shown = all
    .filter(({ pool }) => pool.toLowerCase().includes(part))
    .filter(({ pool }) => !filters["sort"] || sortOf(pool) === filters["sort"])
    .filter((pool) => fits(pool, filters["only"]));
  const first = new Set(shown.filter(({ kind }) => kind === "named").slice(0, OPEN).map(({ pool }) => pool));
  const isOpen = (pool: string) => chosen.get(pool) ?? first.has(pool);
  const open = shown.filter(({ kind, pool }) => kind !== "amount" && isOpen(pool)).slice(0, WHOLE_MOST);
  const wanted = open.map(({ pool }) => pool).sort().join();
  useEffect(() => setWhole(wanted), [wanted]);
  const toggle = (pool: string, to: boolean) => {
    chosen.set(pool, to);
    draw((count) => count + 1);
  };
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
                <PoolCard key={pool.pool} of={pool} isOpen={open.includes(pool)} toggle={(to) => toggle(pool.pool, to)} />
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

/** What was shown last stays until there is an answer about other pools. */
function useKept<T>(found: Watched<T>): Watched<T> {
  const last = useRef(found.value);
  last.current = found.value ?? last.current;
  return { ...found, value: last.current };
}
