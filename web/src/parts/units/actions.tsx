/** What operators do with a unit: hold, release, drain, recycle. */

import { api, ask } from "../../api/client";
import { Action, Copy, Field } from "../action";
import { type Unit, WORDS } from "./kinds";

interface Props {
  of: Unit;
  then: () => void;
  /** Called when console output was asked for: it comes into the journal. */
  onConsole?: () => void;
}

const HOURS = [1, 8, 24, 72, 168];
const REASON = 300;

export function UnitActions({ of, then, onConsole }: Props) {
  const one = WORDS[of.kind].one;
  const isGone = of.state === "gone";
  const isApart = of.quarantine !== null;
  return (
    <>
      {!isGone && !isApart && <Hold of={of} then={then} />}
      {of.hold && <Release of={of} then={then} />}
      {isApart && <Mended of={of} then={then} />}
      {isApart && <Removed of={of} then={then} />}
      {!isGone && !of.drain && !isApart && <Drain of={of} then={then} />}
      {!isGone && !of.hold && !of.drain?.at_once && <Recycle of={of} then={then} />}
      {!isGone && of.kind === "workers" && onConsole && <Console id={of.id} then={onConsole} />}
      <Copy text={`penstock ${one} show ${of.id}`} title="Copy as command" />
    </>
  );
}

/** Its factory writes what the machine printed into the journal, within seconds. */
const Console = ({ id, then }: { id: string; then: () => void }) => (
  <Action
    title="Console output"
    run={() => ask(api.POST("/v1/workers/{worker}/console", { params: { path: { worker: id } } }))}
    done="The console output comes into the journal"
    then={then}
  />
);

const Reason = ({ isRequired }: { isRequired?: boolean }) => (
  <Field label="Reason" name="reason" maxLength={REASON} required={isRequired} hint="Others can read it." autocomplete="off" />
);

function Hold({ of, then }: Props) {
  const run = (form: FormData) => {
    const body = { reason: String(form.get("reason")), for: Number(form.get("hours")) * 3600 };
    return of.kind === "workers"
      ? ask(api.POST("/v1/workers/{worker}/hold", { params: { path: { worker: of.id } }, body }))
      : ask(api.POST("/v1/resources/{resource}/hold", { params: { path: { resource: of.id } }, body }));
  };
  const hours = (
    <label class="field">
      <span>For how long</span>
      <select name="hours">
        {HOURS.map((each) => (
          <option key={each} value={each} selected={each === 8}>
            {each < 24 ? `${each} h` : `${each / 24} d`}
          </option>
        ))}
      </select>
    </label>
  );
  const question = of.hold
    ? `${of.hold.by} holds it: ${of.hold.reason}. Your hold replaces that one.`
    : "It is kept as it is, also after its job has ended, until somebody releases it or the time is over.";
  return (
    <Action
      title={of.hold ? "Hold again" : "Hold"}
      run={run}
      done={`${of.id} is held`}
      then={then}
      question={question}
      fields={
        <>
          <Reason isRequired />
          {hours}
        </>
      }
    />
  );
}

/** Both what ends a hold and what ends a quarantine. With a proof the unit is taken as removed. */
function release(of: Unit, proof = "") {
  const body = { proof };
  return of.kind === "workers"
    ? ask(api.POST("/v1/workers/{worker}/release", { params: { path: { worker: of.id } }, body }))
    : ask(api.POST("/v1/resources/{resource}/release", { params: { path: { resource: of.id } }, body }));
}

const Release = ({ of, then }: Props) => (
  <Action
    title="Release"
    run={() => release(of)}
    done={`${of.id} was released`}
    then={then}
    question={`${of.hold?.by} holds it: ${of.hold?.reason}. Without the hold, what it delayed goes on.`}
  />
);

const Mended = ({ of, then }: Props) => (
  <Action
    title="Release from quarantine"
    run={() => release(of)}
    done={`${of.id} was released from quarantine`}
    then={then}
    question={`It is in quarantine: ${of.quarantine?.reason}. Release it once that is mended: its maker then destroys it once more.`}
  />
);

const Removed = ({ of, then }: Props) => (
  <Action
    title="Removed by hand"
    isDangerous
    run={(form) => release(of, String(form.get("proof")))}
    done={`${of.id} is gone`}
    then={then}
    question="Its slot is granted again on your word. Only say so if you removed it yourself, and checked that it is gone."
    fields={<Field label="What you checked" name="proof" maxLength={REASON} required autocomplete="off" hint="It is kept for the record." />}
  />
);

function Drain({ of, then }: Props) {
  const run = (form: FormData) => {
    const body = { reason: String(form.get("reason") ?? "") };
    return of.kind === "workers"
      ? ask(api.POST("/v1/workers/{worker}/drain", { params: { path: { worker: of.id } }, body }))
      : ask(api.POST("/v1/resources/{resource}/drain", { params: { path: { resource: of.id } }, body }));
  };
  return (
    <Action
      title="Drain"
      isDangerous
      run={run}
      done={`${of.id} is drained`}
      then={then}
      question="No other job gets it. It is destroyed once its present job has ended. This cannot be undone."
      fields={<Reason />}
    />
  );
}

function Recycle({ of, then }: Props) {
  const run = (form: FormData) => {
    const body = { reason: String(form.get("reason") ?? "") };
    return of.kind === "workers"
      ? ask(api.POST("/v1/workers/{worker}/recycle", { params: { path: { worker: of.id } }, body }))
      : ask(api.POST("/v1/resources/{resource}/recycle", { params: { path: { resource: of.id } }, body }));
  };
  return (
    <Action
      title="Recycle"
      isDangerous
      run={run}
      done={`${of.id} is recycled`}
      then={then}
      question="It is destroyed now. If a job has it, that attempt is lost, and the job is tried again as after any loss. This cannot be undone."
      fields={<Reason />}
    />
  );
}
