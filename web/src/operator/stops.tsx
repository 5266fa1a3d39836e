/** What operators have stopped as a whole: the site, factories, wells. */

import { api, ask, type Schemas } from "../api/client";
import { Action, Copy, Field } from "../parts/action";
import { wholeOf } from "../parts/pools/numbers";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { Section } from "./section";
import type { Attention } from "./watch";

type Stop = Schemas["StopView"];

interface Props {
  found: Attention["stops"];
  then: () => void;
}

const SITE = "site";

export function Stops({ found, then }: Props) {
  const rows = found.items;
  const columns: Column<Stop>[] = [
    { title: "What", cell: (stop) => wholeOf(stop.scope) },
    { title: "By", cell: (stop) => stop.by },
    { title: "When", cell: (stop) => <When at={stop.since} /> },
    { title: "Why", cell: (stop) => stop.reason },
    { title: "Its units", cell: (stop) => (stop.drains ? "are drained" : "stay") },
    { title: "State", cell: (stop) => (stop.is_spread ? "in force" : "being brought to all pools") },
    { title: "Actions", cell: (stop) => <Lift of={stop.scope} then={then} /> },
  ];
  return (
    <Section
      id="stops"
      title="Site, factories and wells that are paused"
      runbook="operations#pause-the-site-a-factory-or-a-well"
      nothing={rows.length === 0 ? "Neither the site nor a factory or well is paused." : undefined}
    >
      {rows.length > 0 && <Table caption="Stops" columns={columns} rows={rows} id={(stop) => stop.scope} empty="" />}
      {!rows.some((stop) => stop.scope === SITE) && <PauseSite then={then} />}
    </Section>
  );
}

/** Characters. */
const LONGEST_REASON = 300;

function PauseSite({ then }: { then: () => void }) {
  return (
    <div class="actions">
      <Action
        title="Pause the site"
        isDangerous
        run={(form) => ask(api.POST("/v1/site/pause", { body: { reason: String(form.get("reason") ?? "").trim() } }))}
        done="The site is paused"
        then={then}
        question="Nothing is granted on the whole site until somebody resumes it. Running jobs go on; all others wait."
        fields={
          <Field label="Reason" name="reason" required maxLength={LONGEST_REASON} hint="Shown to everybody whose job waits." />
        }
      />
      <Copy text='penstock site pause --reason "…"' title="As command" />
    </div>
  );
}

function Lift({ of, then }: { of: string; then: () => void }) {
  const [sort = "", name = ""] = of.split("/");
  return (
    <div class="actions">
      <Action title={of === SITE ? "Resume" : "Enable"} run={() => lift(sort, name)} done={`${wholeOf(of)} grants again`} then={then} />
      <Copy text={of === SITE ? "penstock site resume" : `penstock ${sort} enable ${name}`} title="As command" />
    </div>
  );
}

function lift(sort: string, name: string): Promise<unknown> {
  if (sort === SITE) return ask(api.POST("/v1/site/resume", {}));
  const params = { path: { name } };
  return sort === "factory"
    ? ask(api.POST("/v1/factories/{name}/enable", { params }))
    : ask(api.POST("/v1/wells/{name}/enable", { params }));
}
