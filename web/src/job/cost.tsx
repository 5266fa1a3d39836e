/** What a job cost, or has cost so far; and how much of that was for what it did not use. Amounts are shown as they come. */

import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Shown } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { duration, When } from "../parts/time";
import { pricesPath } from "../prices/query";
import { useSession } from "../session";

type Job = Schemas["JobView"];
type View = Schemas["CostView"];

const CHARGES: Column<Schemas["ChargeView"]>[] = [
  { title: "What", cell: (row) => (row.name === row.type ? row.name : `${row.name} (${row.type})`) },
  { title: "Had for", cell: (row) => duration(row.seconds), isNumber: true },
  { title: "Cost", cell: (row) => row.cost, isNumber: true },
  { title: "Of it unused", cell: (row) => row.unused, isNumber: true },
];

export function Cost({ job }: { job: Job }) {
  const cost = useWatch<View>(
    `cost ${job.id} ${job.state} ${job.cost?.total ?? ""}`,
    (signal) => api.GET("/v1/jobs/{job}/cost", { params: { path: { job: job.id } }, signal }),
    { isLast: () => true }, // it grows as time passes, which is no news
  );
  return (
    <section class="card" aria-label="Price">
      <h2>Price</h2>
      <Shown of={cost}>{(found) => <Sums found={found} job={job} />}</Shown>
    </section>
  );
}

function Sums({ found, job }: { found: View; job: Job }) {
  return (
    <>
      <p>
        {found.is_final ? "It cost " : "So far it has cost "}
        <strong>
          {found.total} {found.currency}
        </strong>
        , of which {found.unused} for what it had while its script did not run.
        {!found.is_final && found.final_after && (
          <span class="faint">
            {" "}
            The price is looked at again <When at={found.final_after} />.
          </span>
        )}
      </p>
      <dl class="facts">
        <dt>Workers</dt>
        <dd>{found.worker}</dd>
        <dt>Resources</dt>
        <dd>{found.resources}</dd>
        <dt>The service</dt>
        <dd>{found.control}</dd>
        <dt>Files kept</dt>
        <dd>{found.stored}</dd>
        <dt>Bytes sent</dt>
        <dd>{found.sent}</dd>
      </dl>
      <More job={job} />
      {found.charges.length > 0 && <Table caption="Charges" columns={CHARGES} rows={found.charges} id={(row) => row.name} empty="" />}
    </>
  );
}

/** Ways to what other jobs cost, for those whom the service tells. */
function More({ job }: { job: Job }) {
  const { who, isOperator } = useSession();
  if (!isOperator && who?.name !== job.owner) return null;
  return (
    <p>
      All jobs of {job.owner} <Link href={pricesPath({ owner: job.owner, by: "target" })}>by target</Link>,{" "}
      <Link href={pricesPath({ owner: job.owner, by: "day" })}>by day</Link>
    </p>
  );
}
