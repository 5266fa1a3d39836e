/** One worker or resource: how it is, who moves it on, whose it is, and all that happened to it. */

import { useState } from "preact/hooks";
import { useParams } from "wouter-preact";

import { useWatch } from "../../api/watch";
import { Audit } from "../audit";
import { Fact } from "../facts";
import { ForOperators } from "../gate";
import { Page, Shown } from "../page";
import { State } from "../state";
import { Lasts, When } from "../time";
import { UnitActions } from "./actions";
import { CoolDowns } from "./cool-downs";
import { Journal } from "./journal";
import { getUnit, type Kind, newsOf, type Unit, WORDS } from "./kinds";
import { Lease } from "./lease";
import "../../style/units.css";

export function UnitDetails({ kind }: { kind: Kind }) {
  const { id } = useParams<{ id: string }>();
  return (
    <ForOperators title={id}>
      <Details kind={kind} id={id} />
    </ForOperators>
  );
}

function Details({ kind, id }: { kind: Kind; id: string }) {
  const unit = useWatch(`${kind} ${id}`, (signal) => getUnit(kind, id, signal), {
    isLast: ({ state }) => state === "gone",
    news: newsOf,
  });
  const [asked, setAsked] = useState(0);
  const heading = unit.value && (
    <>
      <State of={unit.value.state} /> <span class="mono">{id}</span>
    </>
  );
  return (
    <Page
      title={id}
      heading={heading}
      path={[{ title: WORDS[kind].title, to: `/${kind}` }]}
      actions={unit.value && <UnitActions of={unit.value} then={unit.refresh} onConsole={() => setAsked((count) => count + 1)} />}
    >
      <Shown of={unit}>
        {(found) => (
          <>
            <Now of={found} />
            <div class="cards unit-cards">
              <Lease of={found} />
              <Orders of={found} />
              <CoolDowns of={found} />
            </div>
            <section class="part">
              <h2>Journal</h2>
              <Journal of={found} asked={asked} />
            </section>
            <section class="part">
              <h2>Changes by operators</h2>
              <Audit what={`${WORDS[kind].one} ${id}`} changes={[found.state, found.hold, found.drain]} />
            </section>
          </>
        )}
      </Shown>
    </Page>
  );
}

/** What happens to it next, by whom, and what its due time means. */
function Now({ of }: { of: Unit }) {
  return (
    <section class="card" aria-label="Now">
      <p class="unit-next">{capital(of.next_step)}.</p>
      <dl class="facts">
        <Fact name="In this state">
          for <Lasts from={of.since} />
          {of.reason && `: ${of.reason}`}
        </Fact>
        <Fact name="Moved on by">{of.moved_by}</Fact>
        <Fact name="Due">
          <When at={of.due} />
        </Fact>
        <Fact name="What is due">{of.due_is}</Fact>
      </dl>
    </section>
  );
}

/** What operators ordered, and what is wrong: nothing is shown where nothing is. */
function Orders({ of: { hold, drain, quarantine, broken } }: { of: Unit }) {
  if (!hold && !drain && !quarantine && !broken) return null;
  return (
    <section class="card">
      <h2>What is not as usual</h2>
      {broken && <p class="bad">! {capital(broken)}</p>}
      {hold && (
        <p>
          <b class="live">‖ Held</b> by {hold.by} for <Lasts from={hold.since} />: {hold.reason}. It ends{" "}
          <When at={hold.until} />.
        </p>
      )}
      {drain && (
        <p>
          <b class="wait">{drain.at_once ? "↓ Recycled" : "↓ Drained"}</b> by {drain.by} <When at={drain.since} />
          {drain.reason && `: ${drain.reason}`}
        </p>
      )}
      {quarantine && (
        <p>
          <b class="bad">! In quarantine</b> for <Lasts from={quarantine.since} />: {quarantine.reason}
          {quarantine.reminders > 0 && ` (operators were reminded ${quarantine.reminders} times)`}
        </p>
      )}
    </section>
  );
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
