/** What the last account diff found: things outside that no row knows. Always shown, also if it is none. */

import { api, ask } from "../api/client";
import { Action, Copy } from "../parts/action";
import { When } from "../parts/time";
import { Section } from "./section";
import type { Attention } from "./watch";

interface Props {
  found: Attention["account"];
  then: () => void;
}

const NONE = "Nothing in the account was left behind.";

export function Leftovers({ found, then }: Props) {
  const { left = 0, unlisted = 0 } = found ?? {};
  return (
    <Section
      id="leftovers"
      title="Left over in the account"
      runbook="operations#leftovers"
      nothing={found?.finished && left === 0 && unlisted === 0 ? NONE : undefined}
      actions={<Now then={then} />}
    >
      {found ? <Told of={found} /> : <p class="faint">The account was not compared yet. It is each night at 03:00 UTC.</p>}
    </Section>
  );
}

function Told({ of: { left, unlisted, things, finished, began } }: { of: NonNullable<Props["found"]> }) {
  return (
    <p data-left={left} data-unlisted={unlisted}>
      {left > 0 && (
        <>
          <strong class="bad">
            {left} of {things} things
          </strong>{" "}
          belong to no unit: <code>penstock account diff</code> lists them.{" "}
        </>
      )}
      {unlisted > 0 && (
        <strong class="wait">
          {unlisted} {unlisted === 1 ? "factory or well" : "factories or wells"} could not be listed.{" "}
        </strong>
      )}
      {finished ? (
        <>
          {things} things were compared, <When at={finished} />.
        </>
      ) : (
        <>
          A comparison has begun, <When at={began} />.
        </>
      )}
    </p>
  );
}

function Now({ then }: { then: () => void }) {
  return (
    <>
      <Action title="Compare now" run={() => ask(api.POST("/v1/account/diff"))} done="A comparison has begun" then={then} />
      <Copy text="penstock account diff --now" title="As command" />
    </>
  );
}
