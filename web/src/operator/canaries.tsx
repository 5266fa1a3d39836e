/** Canaries: jobs that the service sends by itself to see whether targets and resource types work. */

import { api, ask, type Schemas } from "../api/client";
import { Action, Copy } from "../parts/action";
import { JobName, PoolName } from "../parts/names";
import { State } from "../parts/state";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { isFailing } from "./findings";
import { Section } from "./section";
import type { Attention } from "./watch";

type Canary = Schemas["CanaryView"];

interface Props {
  found: Attention["canaries"];
  then: () => void;
}

export function Canaries({ found, then }: Props) {
  const rows = found.items;
  const columns: Column<Canary>[] = [
    { title: "Pool", cell: (canary) => <PoolName of={canary.pool} /> },
    { title: "Last result", cell: (canary) => (canary.outcome ? <State of={canary.outcome} /> : "none yet") },
    { title: "Failed in a row", cell: (canary) => canary.failures, isNumber: true },
    { title: "Why", cell: (canary) => canary.reason },
    { title: "Job", cell: (canary) => <JobName id={canary.job} /> },
    { title: "Sent", cell: (canary) => <When at={canary.since} /> },
    { title: "Next", cell: (canary) => (canary.is_out ? "is out now" : <When at={canary.due} />) },
    { title: "Actions", cell: (canary) => <Send canary={canary} then={then} /> },
  ];
  const nothing = rows.length === 0 ? "The site has no canary." : found.count === 0 ? "No canary fails." : undefined;
  return (
    <Section id="canaries" title="Canaries" runbook="operations#canaryfailing" nothing={nothing}>
      {rows.length > 0 && (
        <Table caption="Canaries" columns={columns} rows={rows} id={(canary) => canary.pool} empty="" isMarked={isFailing} />
      )}
      {found.of > rows.length && (
        <p class="faint">
          These are the first {rows.length} of {found.of}.
        </p>
      )}
    </Section>
  );
}

function Send({ canary: { pool, is_out }, then }: { canary: Canary; then: () => void }) {
  const [sort = "", name = ""] = pool.split("/");
  return (
    <div class="actions">
      <Action
        title="Send"
        run={() => ask(api.POST("/v1/canaries/{sort}/{name}/send", { params: { path: { sort, name } } }))}
        done={`A canary of ${pool} is sent`}
        then={then}
        isDisabled={is_out}
      />
      <Copy text={`penstock canary send ${pool}`} title="As command" />
    </div>
  );
}
