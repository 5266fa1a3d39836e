/** Who waits for whom, over the whole site, live. */

import { useMemo, useState } from "preact/hooks";

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Copy } from "../parts/action";
import { Choice, useFilters, Wanted } from "../parts/filters";
import { ForOperators } from "../parts/gate";
import { Graph } from "../parts/graph/graph";
import { Page, Shown } from "../parts/page";
import { chosenOf, type Filters, fits, pilesOf, waitsOf, type Waits } from "../parts/waits/groups";
import { Beside } from "../parts/waits/beside";
import { pictureOf } from "../parts/waits/picture";
import { WaitsTable } from "../parts/waits/table";
import "../style/waits.css";

type View = Schemas["GraphView"];

export default function WaitGraph() {
  return (
    <ForOperators title="Graph">
      <Page title="Graph" actions={<Copy text="penstock pool show --graph" title="Copy as command" />}>
        <Live />
      </Page>
    </ForOperators>
  );
}

function Live() {
  const graph = useWatch("graph", (signal) => api.GET("/v1/graph", { signal }));
  return (
    <Shown of={graph}>
      {(view) => (
        <>
          <Warnings of={view} />
          <Site of={view} />
        </>
      )}
    </Shown>
  );
}

function Warnings({ of: { cycle, left_out } }: { of: View }) {
  return (
    <>
      {cycle.length > 0 && (
        <p class="problem" role="alert">
          These wait for each other, which must not happen: {cycle.join(" → ")}. Please report it.
        </p>
      )}
      {left_out > 0 && <p class="problem">{left_out} more jobs and pools are not shown: the service lists the first.</p>}
    </>
  );
}

function Site({ of }: { of: View }) {
  const [filters, change] = useFilters();
  const waits = useMemo(() => waitsOf(of), [of]);
  const wanted: Filters = { owner: filters["owner"], name: filters["name"], pool: filters["pool"] };
  const isAll = filters["draw"] === "all";
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const jobs = useMemo(() => chosenOf(waits, wanted), [waits, JSON.stringify(wanted)]);
  const piles = useMemo(() => pilesOf(jobs), [jobs]);
  const isOpen = (pile: string) => isAll || opened.has(pile);
  const picture = useMemo(() => pictureOf(waits, piles, isOpen), [waits, piles, opened, isAll]);
  const [isNew, setNew] = useState(false);
  const at = filters["at"];

  const choose = (id: string) => {
    setNew(true);
    change("at", id);
  };
  const close = () => {
    change("at", "");
    document.querySelector<SVGAElement>(`[data-node="${CSS.escape(at ?? "")}"]`)?.focus();
  };
  const toggle = (pile: string) => {
    const next = new Set(opened);
    if (!next.delete(pile)) next.add(pile);
    setOpened(next);
  };
  return (
    <>
      <div class="filters">
        <Wanted label="Owner" value={filters["owner"]} onChange={(value) => change("owner", value)} />
        <Wanted label="Job" value={filters["name"]} onChange={(value) => change("name", value)} hint="name" />
        <Choice label="Pool" value={filters["pool"]} options={busyPools(waits)} onChange={(value) => change("pool", value)} />
        <label class="tick">
          <input type="checkbox" checked={isAll} onChange={() => change("draw", isAll ? "" : "all")} />
          Draw every job
        </label>
      </div>
      <Legend waits={waits} shown={jobs.length} fitting={jobs.filter((job) => fits(job, wanted)).length} />
      <div class={at ? "waits with-panel" : "waits"}>
        {picture.nodes.length > 0 ? (
          <Graph label="Who waits for whom" graph={picture} onOpen={choose} chosen={at} />
        ) : (
          <p class="empty">No job waits or holds anything{jobs.length < waits.jobs.size && " that looks like that"}.</p>
        )}
        {at && (
          <Beside at={at} waits={waits} piles={piles} isNew={isNew} isOpen={isOpen} onToggle={isAll ? undefined : toggle} onClose={close} />
        )}
      </div>
      <WaitsTable of={waits} jobs={jobs} />
    </>
  );
}

/** The pools that some job waits for or holds. */
const busyPools = ({ pools }: Waits): string[] =>
  [...pools.values()].filter(({ waiting, holders }) => waiting.length + holders.length > 0).map(({ id }) => id);

/** How the picture is read, and what is not in it. */
function Legend({ waits, shown, fitting }: { waits: Waits; shown: number; fitting: number }) {
  const idle = waits.pools.size - busyPools(waits).length;
  const others = shown - fitting;
  return (
    <p class="faint">
      Read from left to right: … jobs that wait – the pools that they wait for – ■ jobs that hold these. Jobs that wait for
      the same and hold the same are drawn as one, with their number. {shown < waits.jobs.size && `${shown} of `}
      {waits.jobs.size} jobs
      {others > 0 && `, of which ${others} because others wait for them`}
      {idle > 0 && `; ${idle} pools that no job waits for or holds are left out`}.
    </p>
  );
}
