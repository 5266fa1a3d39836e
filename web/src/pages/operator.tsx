/** What needs a person: each with where it is solved, and with its runbook. */

import { Link } from "wouter-preact";

import { Alarms } from "../operator/alarms";
import { Canaries } from "../operator/canaries";
import { Deliveries } from "../operator/deliveries";
import {
  cooling,
  endsSoon,
  type Finding,
  glance,
  held,
  isFailing,
  leaks,
  notable,
  notPutBack,
  quarantined,
  SHORT,
  unlisted,
  WRONG,
} from "../operator/findings";
import { GoingSection, WITHIN } from "../operator/going";
import { Capacity, Failures, Leaks, Misconfigured, Unlisted } from "../operator/makers";
import { DriftSection, Paused, pausedOf } from "../operator/pools";
import { Known } from "../operator/section";
import { Holds, NotPutBack, Quarantine } from "../operator/units";
import { useCanaries, useDeliveries, useDrift, useGoing, useMakers, usePools, useUnits } from "../operator/watch";
import { useFilters } from "../parts/filters";
import { ForOperators } from "../parts/gate";
import { Loading, Page } from "../parts/page";
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
  const units = useUnits();
  const makers = useMakers();
  const pools = usePools();
  const drift = useDrift();
  const canaries = useCanaries();
  const deliveries = useDeliveries();
  const going = useGoing(WITHIN[within] as number);
  const watched = { units, makers, pools, drift, canaries, deliveries };
  const poolsToo = () => {
    pools.refresh();
    drift.refresh();
  };
  return (
    <Page title="Operator" heading="What needs a person" actions={<Ways />}>
      <Overview of={watched} />
      {Object.values(watched).every((each) => !each.value && !each.error) && <Loading />}
      <Known of={units}>{({ units: found }) => <Quarantine units={found} then={units.refresh} />}</Known>
      <Known of={makers}>
        {(found) => (
          <>
            <Misconfigured makers={found} />
            <Leaks makers={found} />
            <Unlisted makers={found} />
            <Capacity makers={found} />
            <Failures makers={found} />
          </>
        )}
      </Known>
      <Known of={canaries}>{({ items }) => <Canaries rows={items} then={canaries.refresh} />}</Known>
      {units.value && <Holds units={units.value.units} then={units.refresh} />}
      {units.value && <NotPutBack units={units.value.units} />}
      <Known of={pools}>{({ items }) => <Paused pools={items} drift={drift.value?.drift ?? []} then={poolsToo} />}</Known>
      <Known of={drift}>{(found) => <DriftSection changes={found} />}</Known>
      <Known of={deliveries}>{({ items }) => <Deliveries rows={items} then={deliveries.refresh} />}</Known>
      <Known of={going}>
        {(found) => <GoingSection found={found} within={within} change={(next) => change("within", next)} />}
      </Known>
      <Alarms />
      <Runbook />
    </Page>
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

interface Watches {
  units: ReturnType<typeof useUnits>;
  makers: ReturnType<typeof useMakers>;
  pools: ReturnType<typeof usePools>;
  drift: ReturnType<typeof useDrift>;
  canaries: ReturnType<typeof useCanaries>;
  deliveries: ReturnType<typeof useDeliveries>;
}

/** All parts at a glance: how many each has, and a link to it. */
function Overview({ of }: { of: Watches }) {
  const now = useNow();
  return (
    <nav aria-label="At a glance">
      <ul class="glance">
        {findings(of, now).map((each) => (
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
      <a href={`#${of.id}`} data-finding={of.id} data-count={of.count}>
        <strong class={tone}>
          <span aria-hidden="true">{sign}</span> {of.count ?? ""}
        </strong>
        <span>{of.title}</span>
      </a>
    </li>
  );
}

/** What there is, counted; what is not known yet has no number. */
function findings(of: Watches, now: number): Finding[] {
  const units = of.units.value?.units;
  const makers = of.makers.value;
  const { strays = 0, missing = 0 } = makers ? leaks(makers) : {};
  return [
    { id: "quarantine", title: "in quarantine", tone: "bad", count: units && quarantined(units).length },
    { id: "misconfigured", title: "misconfigured, or broken", tone: "bad", count: makers && cooling(makers, WRONG).length },
    { id: "leaks", title: "strays", tone: "bad", count: makers && strays },
    { id: "leaks", title: "missing", tone: "bad", count: makers && missing },
    { id: "unlisted", title: "not listed", tone: "bad", count: makers && unlisted(makers).length },
    { id: "capacity", title: "without capacity", tone: "wait", count: makers && cooling(makers, SHORT).length },
    { id: "canaries", title: "canaries fail", tone: "bad", count: of.canaries.value?.items.filter(isFailing).length },
    {
      id: "holds",
      title: "holds end within an hour",
      tone: "wait",
      count: units && held(units).filter((each) => endsSoon(each, now)).length,
    },
    { id: "not-put-back", title: "not put back", tone: "bad", count: units && notPutBack(units, now).length },
    { id: "paused", title: "pools paused", tone: "wait", count: of.pools.value && pausedOf(of.pools.value.items).length },
    { id: "drift", title: "changed by hand", tone: "wait", count: of.drift.value?.drift.length },
    {
      id: "deliveries",
      title: "deliveries missed or open",
      tone: "wait",
      count: of.deliveries.value && notable(of.deliveries.value.items).length,
    },
  ];
}
