/** What needs a person: each with where it is solved, and with its runbook. */

import { Link } from "wouter-preact";

import { AlarmSections } from "../operator/alarms";
import { Leftovers } from "../operator/leftovers";
import { Canaries } from "../operator/canaries";
import { Deliveries } from "../operator/deliveries";
import { type Finding, findings, glance } from "../operator/findings";
import { GoingSection, WITHIN } from "../operator/going";
import { Capacity, Failures, Leaks, Misconfigured, Unlisted } from "../operator/makers";
import { DriftSection, Paused } from "../operator/pools";
import { Stops } from "../operator/stops";
import { Holds, NotPutBack, Quarantine } from "../operator/units";
import { type AlarmsAndLetters, type Attention, useAlarms, useAttention, useGoing } from "../operator/watch";
import { useFilters } from "../parts/filters";
import { ForOperators } from "../parts/gate";
import { Page, Shown } from "../parts/page";
import { Runbook } from "../parts/runbook";
import { useNow } from "../parts/time";
import "../style/operator.css";

export default function Operator() {
  return (
    <ForOperators title="Operator">
      <All />
    </ForOperators>
  );
}

function All() {
  const [filters, change] = useFilters();
  const within = filters["within"] && WITHIN[filters["within"]] ? filters["within"] : "1 d";
  const found = useAttention();
  const watched = useAlarms();
  const going = useGoing(WITHIN[within] as number);
  return (
    <Page title="Operator" heading="What needs a person" actions={<Ways />}>
      <Overview of={found.value} watched={watched.value} />
      <Shown of={found}>{(value) => <Findings of={value} then={found.refresh} />}</Shown>
      <Shown of={going}>
        {(value) => <GoingSection found={value} within={within} change={(next) => change("within", next)} />}
      </Shown>
      <AlarmSections of={watched} />
      <Runbook />
    </Page>
  );
}

function Findings({ of, then }: { of: Attention; then: () => void }) {
  return (
    <>
      <Quarantine found={of.quarantined} then={then} />
      <Misconfigured found={of.misconfigured} />
      <Leaks found={of.compared} />
      <Unlisted found={of.compared} />
      <Leftovers found={of.account} then={then} />
      <Capacity found={of.short} />
      <Failures found={of.failures} />
      <Canaries found={of.canaries} then={then} />
      <Holds found={of.held} then={then} />
      <NotPutBack found={of.not_put_back} />
      <Stops found={of.stops} then={then} />
      <Paused found={of.paused} then={then} />
      <DriftSection found={of.drift} />
      <Deliveries found={of.deliveries} then={then} />
    </>
  );
}

function Ways() {
  return (
    <>
      <Link href="/audit" class="button">
        Audit log
      </Link>
      <Link href="/site" class="button">
        Site
      </Link>
    </>
  );
}

/** All parts at a glance: how many each has, and a link to it. */
function Overview({ of, watched }: { of: Attention | undefined; watched: AlarmsAndLetters | undefined }) {
  const now = useNow();
  return (
    <nav aria-label="At a glance">
      <ul class="glance">
        {findings(of, watched, now).map((each) => (
          <Glance key={each.title} of={each} />
        ))}
      </ul>
    </nav>
  );
}

function Glance({ of }: { of: Finding }) {
  const [sign, tone] = glance(of);
  return (
    <li>
      <a href={`#${of.id}`} data-finding={of.id} data-count={of.count} data-problem={of.problem || undefined}>
        <strong class={tone}>
          <span aria-hidden="true">{sign}</span> {of.count ?? ""}
        </strong>
        <span>{of.title}</span>
      </a>
    </li>
  );
}
