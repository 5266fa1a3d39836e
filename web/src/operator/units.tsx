/** Units that need somebody: in quarantine, held, or not put back. */

import { api, ask } from "../api/client";
import { Action, Copy, Field } from "../parts/action";
import { JobName, UnitName } from "../parts/names";
import { Table, type Column } from "../parts/table";
import { Lasts, useNow, When } from "../parts/time";
import { endsSoon } from "./findings";
import { Cut, Section } from "./section";
import type { Attention, Unit } from "./watch";

interface Props {
  found: Attention["held"];
  then: () => void;
}

const UNIT: Column<Unit> = { title: "Unit", cell: (unit) => <UnitName id={unit.id} /> };
const MAKER: Column<Unit> = { title: "Made by", cell: (unit) => `${unit.maker}, slot ${unit.slot}`, isMinor: true };
const JOB: Column<Unit> = {
  title: "Job",
  cell: (unit) => <JobName id={unit.job} name={unit.job_name} owner={unit.job_owner} />,
};

export function Quarantine({ found, then }: Props) {
  const rows = found.items;
  const columns: Column<Unit>[] = [
    UNIT,
    MAKER,
    { title: "Why", cell: (unit) => unit.quarantine?.reason },
    { title: "For", cell: (unit) => <Lasts from={unit.quarantine?.since} /> },
    { title: "Reminders", cell: (unit) => unit.quarantine?.reminders, isNumber: true, isMinor: true },
    { title: "Actions", cell: (unit) => <EndQuarantine unit={unit} then={then} /> },
  ];
  return (
    <Section
      id="quarantine"
      title="Quarantine"
      runbook="operations#quarantined"
      nothing={rows.length === 0 ? "No unit is in quarantine." : undefined}
    >
      {rows.length > 0 && (
        <Table caption="Units in quarantine" columns={columns} rows={rows} id={(unit) => unit.id} empty="" />
      )}
      <Cut of={found} />
    </Section>
  );
}

/** What ends a quarantine: the cause is fixed, the driver tries once more, or somebody removed it by hand. */
function EndQuarantine({ unit, then }: { unit: Unit; then: () => void }) {
  return (
    <div class="actions">
      <Action
        title="Release"
        question={`You fixed the cause: the driver of ${unit.maker} destroys ${unit.id}, and its slot is free then. If you removed it by hand, say what you checked: it counts as gone at once, and your words are the record of it.`}
        fields={
          <Field
            label="Proof"
            name="proof"
            hint="Only for a unit that you removed by hand, such as: sold; disk shredded."
            maxLength={200}
          />
        }
        run={(form) => release(unit, String(form.get("proof") ?? ""))}
        done={`${unit.id} is released`}
        then={then}
      />
      <Action
        title="Recycle"
        question={`The driver of ${unit.maker} tries once more to destroy ${unit.id}.`}
        fields={<Field label="Reason" name="reason" hint="For others to read." maxLength={200} />}
        run={(form) => recycle(unit, String(form.get("reason") ?? ""))}
        done={`${unit.id} is recycled`}
        then={then}
        isDangerous
      />
      <Copy text={`penstock ${unit.kind} release ${unit.id}`} title="As command" />
    </div>
  );
}

export function Holds({ found, then }: Props) {
  const now = useNow();
  const rows = found.items;
  const columns: Column<Unit>[] = [
    UNIT,
    JOB,
    { title: "By", cell: (unit) => unit.hold?.by },
    { title: "Why", cell: (unit) => unit.hold?.reason },
    { title: "For", cell: (unit) => <Lasts from={unit.hold?.since} /> },
    { title: "Ends", cell: (unit) => <Ends unit={unit} now={now} /> },
    { title: "Actions", cell: (unit) => <HoldActions unit={unit} then={then} /> },
  ];
  return (
    <Section
      id="holds"
      title="Holds"
      runbook="operations#forgottenhold"
      nothing={rows.length === 0 ? "No worker or resource is held." : undefined}
    >
      {rows.length > 0 && (
        <Table
          caption="Held units"
          columns={columns}
          rows={rows}
          id={(unit) => unit.id}
          empty=""
          isMarked={(unit) => endsSoon(unit, now)}
        />
      )}
      <Cut of={found} />
    </Section>
  );
}

function Ends({ unit, now }: { unit: Unit; now: number }) {
  return (
    <span>
      <When at={unit.hold?.until} />
      {endsSoon(unit, now) && <strong class="wait"> · soon</strong>}
    </span>
  );
}

function HoldActions({ unit, then }: { unit: Unit; then: () => void }) {
  return (
    <div class="actions">
      <Action
        title="Hold on"
        question={`A new hold of ${unit.id} takes the place of this one.`}
        fields={
          <>
            <Field label="Reason" name="reason" required defaultValue={unit.hold?.reason} maxLength={200} />
            <Field
              label="Hours from now"
              name="hours"
              type="number"
              min={1}
              max={168}
              step={1}
              defaultValue={8}
              required
              hint="At most 7 days: 168."
            />
          </>
        }
        run={(form) => hold(unit, String(form.get("reason")), Number(form.get("hours")) * 3600)}
        done={`${unit.id} is held for longer`}
        then={then}
      />
      <Action
        title="Release"
        question={`What the hold of ${unit.id} delayed goes on: it is cleaned or destroyed, and its slot is free then.`}
        run={() => release(unit, "")}
        done={`${unit.id} is released`}
        then={then}
      />
    </div>
  );
}

export function NotPutBack({ found }: Omit<Props, "then">) {
  const rows = found.items;
  const columns: Column<Unit>[] = [
    UNIT,
    MAKER,
    JOB,
    { title: "Why", cell: (unit) => unit.reason },
    { title: "For", cell: (unit) => <Lasts from={unit.since} /> },
    { title: "Next", cell: (unit) => unit.next_step },
  ];
  return (
    <Section
      id="not-put-back"
      title="Not put back"
      runbook="operations#notputback"
      nothing={rows.length === 0 ? "No unit has waited for an hour to be destroyed." : undefined}
    >
      {rows.length > 0 && (
        <Table caption="Units that were not put back" columns={columns} rows={rows} id={(unit) => unit.id} empty="" />
      )}
      <Cut of={found} />
    </Section>
  );
}

function release(unit: Unit, proof: string) {
  const body = { proof };
  return unit.kind === "worker"
    ? ask(api.POST("/v1/workers/{worker}/release", { params: { path: { worker: unit.id } }, body }))
    : ask(api.POST("/v1/resources/{resource}/release", { params: { path: { resource: unit.id } }, body }));
}

function recycle(unit: Unit, reason: string) {
  const body = { reason };
  return unit.kind === "worker"
    ? ask(api.POST("/v1/workers/{worker}/recycle", { params: { path: { worker: unit.id } }, body }))
    : ask(api.POST("/v1/resources/{resource}/recycle", { params: { path: { resource: unit.id } }, body }));
}

function hold(unit: Unit, reason: string, seconds: number) {
  const body = { reason, for: seconds };
  return unit.kind === "worker"
    ? ask(api.POST("/v1/workers/{worker}/hold", { params: { path: { worker: unit.id } }, body }))
    : ask(api.POST("/v1/resources/{resource}/hold", { params: { path: { resource: unit.id } }, body }));
}
