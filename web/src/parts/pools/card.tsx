/** A pool as a card: what it has, and on request who has it and who is next. */

import { api, type Schemas } from "../../api/client";
import { useWatch } from "../../api/watch";
import { JobName, PoolName } from "../names";
import { Loading } from "../page";
import { State } from "../state";
import { Lasts } from "../time";
import { Expected, Until } from "./expected";
import { Bar, Numbers, Troubles } from "./numbers";
import { inOrder, nameOf, sortOf } from "./pressure";
import { Who } from "./slots";

type Pool = Schemas["PoolView"];
type Slot = Schemas["SlotView"];

/** How many slots a card lists; the pool's page has all. */
const LISTED = 12;
interface CardProps {
  /** The pool; with its slots and its queue where it is open, once they are known. */
  of: Pool;
  isOpen: boolean;
  toggle: (isOpen: boolean) => void;
}

export function PoolCard({ of, isOpen, toggle }: CardProps) {
  return (
    <article class="card pool-card" aria-label={of.pool}>
      <h2>
        <PoolName of={of.pool} />
      </h2>
      <Bar of={of} />
      <Numbers of={of} />
      <Troubles of={of} />
      {of.kind !== "amount" && (
        <details open={isOpen} onToggle={(event) => event.currentTarget.open !== isOpen && toggle(event.currentTarget.open)}>
          <summary>Who has it, who is next</summary>
          {isOpen && (of.slots ? <Brief of={of} /> : <Loading />)}
        </details>
      )}
    </article>
  );
}

/** A pool, kept up to date. Estimates move by themselves, which is no news. */
export const usePool = (pool: string) =>
  useWatch(
    `pool ${pool}`,
    (signal) =>
      api.GET("/v1/pools/{sort}/{name}", { params: { path: { sort: sortOf(pool), name: nameOf(pool) } }, signal }),
    { news: newsOf },
  );

/** What of a pool is news. */
export const newsOf = ({ queue, ...rest }: Pool): unknown => [rest, queue?.map(({ expected, ...one }) => one)];

function Brief({ of }: { of: Pool }) {
  const { queue, kind } = of;
  const all = inOrder(of);
  const told = kind === "named" ? all : all.filter((slot) => slot.state !== "free");
  const listed = told.slice(0, LISTED);
  const next = queue?.[0];
  return (
    <>
      <ul class="slots">
        {listed.map((slot) => (
          <li key={slot.slot}>
            <Bench slot={slot} />
          </li>
        ))}
        {told.length > LISTED && <li class="faint">and {told.length - LISTED} more</li>}
        {told.length === 0 && <li class="faint">Nobody has any of it.</li>}
      </ul>
      <p class="next">
        {next ? (
          <>
            <b>Next:</b> <JobName id={next.job} name={next.job_name} owner={next.job_owner} />, expected <Expected of={next} />
          </>
        ) : (
          <span class="faint">Nobody waits for it.</span>
        )}
      </p>
    </>
  );
}

/** One slot: who has it, for how long, until when. */
function Bench({ slot }: { slot: Slot }) {
  return (
    <>
      <b class="slot">{slot.slot}</b>
      <span>
        {slot.state === "held" ? <Who slot={slot} /> : <State of={slot.state} />}
        {slot.state === "held" && (
          <small>
            for <Lasts from={slot.since} />; until: <Until slot={slot} />
          </small>
        )}
      </span>
    </>
  );
}
