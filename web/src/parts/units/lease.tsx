/** Whose a unit is: its job, its slot with the fence, and what its machine's console said if that ended the job. */

import { api } from "../../api/client";
import { useWatch } from "../../api/watch";
import { Fact } from "../facts";
import { JobName, PoolName } from "../names";
import { nameOf, sortOf } from "../pools/pressure";
import { State } from "../state";
import { poolOf, type Unit, WORDS } from "./kinds";

export function Lease({ of }: { of: Unit }) {
  return (
    <section class="card">
      <h2>Lease</h2>
      <dl class="facts">
        <Fact name={WORDS[of.kind].type}>
          <PoolName of={poolOf(of)} />
        </Fact>
        <Fact name="Slot">{of.slot}</Fact>
        <Fact name="Fence">
          <Fence of={of} />
        </Fact>
        <Fact name={WORDS[of.kind].maker}>{of.maker}</Fact>
        <Fact name="Jobs so far">{of.leases}</Fact>
        <Fact name={of.state === "ready" || of.state === "creating" ? "Job" : "Last job"}>
          <JobName id={of.job} name={of.job_name} owner={of.job_owner} />
          {of.attempt !== null && <span class="faint"> attempt {of.attempt}</span>}
        </Fact>
      </dl>
      {of.job && <Job of={of} id={of.job} />}
    </section>
  );
}

/** Seconds. The unit is watched; its job is only told of. */
const SELDOM = 300;

/** The fence of its slot: asked for once a lease, for a pool says it, and the unit does not. */
function Fence({ of }: { of: Unit }) {
  const pool = poolOf(of);
  const { value, error } = useWatch(
    `fence ${pool} ${of.id} ${of.job} ${of.attempt} ${of.state}`,
    (signal) =>
      api.GET("/v1/pools/{sort}/{name}", { params: { path: { sort: sortOf(pool), name: nameOf(pool) } }, signal }),
    { isLast: () => true },
  );
  const slot = value?.slots?.find(({ unit }) => unit === of.id);
  if (slot) return <>{slot.fence}</>;
  return <span class="faint">{value || error ? "it has no slot" : "…"}</span>;
}

/** The state of its job; and the last lines of its console, where the job failed with the machine. */
function Job({ of, id }: { of: Unit; id: string }) {
  const { value } = useWatch(
    `job ${id} ${of.state} ${of.attempt}`, // it is asked for anew when the unit gets further
    (signal) => api.GET("/v1/jobs/{job}", { params: { path: { job: id } }, signal }),
    { isLast: ({ state }) => state === "settled", every: SELDOM },
  );
  if (!value) return null;
  const { failure } = value;
  const isItsOwn = of.kind === "workers" && value.worker === of.id && value.attempt === of.attempt;
  return (
    <>
      <p>
        The job is <State of={value.state} outcome={value.outcome} />
        {value.attempt !== of.attempt && `, now in attempt ${value.attempt}`}
        {value.reason && `: ${value.reason}`}
      </p>
      {failure?.lines_of === "console" && isItsOwn && failure.lines.length > 0 && (
        <figure class="console">
          <figcaption>The last lines of its console</figcaption>
          <pre tabIndex={0}>{failure.lines.join("\n")}</pre>
        </figure>
      )}
    </>
  );
}
