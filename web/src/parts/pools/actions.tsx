/** What operators do with a pool: its limit, a pause. */

import { api, ask, type Schemas } from "../../api/client";
import { useSession } from "../../session";
import { Action, Copy, Field } from "../action";
import { nameOf, sortOf } from "./pressure";

type Pool = Schemas["PoolView"];

interface Props {
  of: Pool;
  then: () => void;
}

export function PoolActions({ of, then }: Props) {
  const { isOperator } = useSession();
  return (
    <>
      {isOperator && of.kind !== "named" && <Resize of={of} then={then} />}
      {isOperator && (of.paused && !of.pause?.scope ? <Resume of={of} then={then} /> : <Pause of={of} then={then} />)}
      <Copy text={`penstock pool show ${of.pool}`} title="Copy as command" />
    </>
  );
}

const pathOf = (pool: string) => ({ path: { sort: sortOf(pool), name: nameOf(pool) } });

/** Characters. */
const LONGEST_REASON = 300;

/** Why, for others to read. */
const Reason = () => (
  <Field label="Reason" name="reason" maxLength={LONGEST_REASON} hint="Shown to others, and to those whose jobs wait. Optional." />
);

const reasonOf = (form: FormData) => ({ reason: String(form.get("reason") ?? "").trim() });

/** Named slots are in the site's configuration; of others the number can be set. */
function Resize({ of, then }: Props) {
  const run = (form: FormData) =>
    ask(
      api.PUT("/v1/pools/{sort}/{name}/limit", {
        params: pathOf(of.pool),
        body: { limit: Number(form.get("limit")), ...reasonOf(form) },
      }),
    );
  return (
    <Action
      title="Change limit"
      run={run}
      done={`The limit of ${of.pool} was set`}
      then={then}
      question={`${of.pool} has a limit of ${of.limit}. A lower limit does not interrupt jobs that hold a slot. It counts until the site's configuration is applied again.`}
      fields={
        <>
          <Field label="Limit" name="limit" type="number" min={0} step={1} required defaultValue={of.limit} />
          <Reason />
        </>
      }
    />
  );
}

function Pause({ of, then }: Props) {
  return (
    <Action
      title="Pause"
      isDangerous
      run={(form) => ask(api.POST("/v1/pools/{sort}/{name}/pause", { params: pathOf(of.pool), body: reasonOf(form) }))}
      done={`${of.pool} is paused`}
      then={then}
      question={`Nothing of ${of.pool} is granted until somebody resumes it. Jobs that hold some of it keep it; ${of.waiting} ${of.waiting === 1 ? "job waits" : "jobs wait"} now.`}
      fields={<Reason />}
    />
  );
}

function Resume({ of, then }: Props) {
  return (
    <Action
      title="Resume"
      run={(form) => ask(api.POST("/v1/pools/{sort}/{name}/resume", { params: pathOf(of.pool), body: reasonOf(form) }))}
      done={`${of.pool} grants again`}
      then={then}
      fields={<Reason />}
    />
  );
}
