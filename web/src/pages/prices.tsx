/** What jobs cost, by owner, target, pool or day, with what was held idle apart: `penstock cost`. */

import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Copy } from "../parts/action";
import { Day, Choice, useFilters, Wanted } from "../parts/filters";
import { ForUsers } from "../parts/gate";
import { Page, Shown } from "../parts/page";
import { Runbook, RunbookLink } from "../parts/runbook";
import { BudgetCard } from "../prices/budget";
import { type Asked, askedOf, BY, commandOf, daysBefore, pricesPath } from "../prices/query";
import { byCurrency, Sums } from "../prices/sums";
import { useSession } from "../session";
import "../style/prices.css";

type Found = Schemas["SumPage"];

/** Sums change when prices are written down, minutes after jobs' ends; and a site's cost a second to add up. */
const SLOWEST = 300;

export default function Prices() {
  return (
    <ForUsers title="Prices">
      <All />
    </ForUsers>
  );
}

function All() {
  const [filters, change] = useFilters();
  const asked = askedOf(filters);
  const costs = useWatch(
    `costs ${Object.values(asked).join(" ")}`,
    (signal) => api.GET("/v1/costs", { params: { query: queryOf(asked) }, signal }),
    { slowest: SLOWEST },
  );
  return (
    <Page title="Prices" actions={<Copy text={commandOf(asked)} title="As command" />}>
      <div class="filters" role="search" aria-label="Choose prices">
        <Choice label="By" value={asked.by} options={BY} isAlways onChange={(by) => change("by", by)} />
        <Day label="From" value={asked.since} onChange={(day) => change("since", day)} />
        <Day label="Until" value={asked.until} onChange={(day) => change("until", day)} />
        <Wanted label="Owner" value={asked.owner} onChange={(owner) => change("owner", owner)} hint="a user or repository" />
      </div>
      <Shown of={costs}>{(found) => <Told found={found} asked={asked} />}</Shown>
      <Runbook />
    </Page>
  );
}

const queryOf = ({ by, since, until, owner }: Asked) => ({
  by,
  ...(since && { since }),
  ...(until && { until }),
  ...(owner && { owner }),
});

function Told({ found, asked }: { found: Found; asked: Asked }) {
  if (!found.is_counted && found.items.length === 0) return <NotCounted />;
  return (
    <>
      {!found.is_counted && <NotCounted />}
      {found.budget && <BudgetCard budget={found.budget} />}
      <Spans found={found} asked={asked} />
      {found.items.length === 0 && (
        <p class="empty">
          No price was written down for a job that ended from {found.since} to {found.until}. That happens five minutes after a
          job's end, once everything that it had is given back.
        </p>
      )}
      {byCurrency(found.items).map(([currency, rows]) => (
        <Sums key={currency} rows={rows} currency={currency} asked={asked} />
      ))}
    </>
  );
}

/** How a site gets prices. */
function NotCounted() {
  return (
    <section class="card" aria-label="No prices">
      <p>
        This site has no prices, so what its jobs cost is not added up. An operator sets them: a table <code>[prices]</code> with{" "}
        <code>currency = "USD"</code> in <Link href="/site">the site's configuration</Link>, and <code>price</code>, the cost of
        an hour, for each target and resource type. <RunbookLink of="site#prices" title="How prices are set" />
      </p>
    </section>
  );
}

/** Whose jobs, and of which days; and the same for other spans. */
function Spans({ found, asked }: { found: Found; asked: Asked }) {
  const { isOperator, who } = useSession();
  const whose = asked.owner ? `of ${asked.owner}` : isOperator ? "of everybody" : `of ${who?.name ?? "you"}`;
  const today = new Date().toISOString().slice(0, 10);
  const spans: [string, string][] = [
    ["This month", ""],
    ["7 days", daysBefore(today, 6)],
    ["30 days", daysBefore(today, 29)],
    ["365 days", daysBefore(today, 364)],
  ];
  return (
    <>
      <nav aria-label="Spans" class="actions">
        {spans.map(([title, since]) => (
          <Link
            key={title}
            href={pricesPath({ ...asked, since, until: "" })}
            aria-current={asked.since === since && !asked.until ? "true" : undefined}
          >
            {title}
          </Link>
        ))}
      </nav>
      <p class="faint">
        Jobs {whose} that ended from <time dateTime={found.since}>{found.since}</time> to{" "}
        <time dateTime={found.until}>{found.until}</time>, in whole days of UTC.
      </p>
    </>
  );
}
