/** A pool as a card: what it has, and on request who has it and who is next. */

import { useEffect, useRef, useState } from "preact/hooks";

import { api, type Schemas } from "../../api/client";
import { useWatch } from "../../api/watch";
import { JobName, PoolName } from "../names";
import { Shown } from "../page";
import { State } from "../state";
import { Lasts } from "../time";
import { Expected, Until } from "./expected";
import { Bar, Numbers, Troubles } from "./numbers";
import { inOrder, nameOf, sortOf } from "./pressure";
import { askedOf, Who } from "./slots";

type Pool = Schemas["PoolView"];
type Slot = Schemas["SlotView"];

/** How many slots a card lists; the pool's page has all. */
const LISTED = 12;
/** For how many slots it asks until when they are held. */
const ASKED = 4;

/** What was opened and closed by hand, by pool, until the page is loaded anew. */
const chosen = new Map<string, boolean>();

export function PoolCard({ of, isOpen }: { of: Pool; isOpen: boolean }) {
  const [isShown, setShown] = useState(chosen.get(of.pool) ?? isOpen);
  const toggle = (open: boolean) => {
    if (open === isShown) return;
    chosen.set(of.pool, open);
    setShown(open);
  };
  return (
    <article class="card pool-card" aria-label={of.pool}>
      <h2>
        <PoolName of={of.pool} />
      </h2>
      <Bar of={of} />
      <Numbers of={of} />
      <Troubles of={of} />
      {of.kind !== "amount" && (
        <details open={isShown} onToggle={(event) => toggle(event.currentTarget.open)}>
          <summary>Who has it, who is next</summary>
          {isShown && <Holders of={of} />}
        </details>
      )}
    </article>
  );
}

/** A pool with its slots and queue. It is asked for anew at once when the list shows other numbers. */
function Holders({ of }: { of: Pool }) {
  const pool = usePool(of.pool);
  const numbers = JSON.stringify(of);
  const before = useRef(numbers);
  useEffect(() => {
    if (before.current !== numbers) pool.refresh();
    before.current = numbers;
  }, [numbers]);
  return <Shown of={pool}>{(whole) => <Brief of={whole} />}</Shown>;
}

/** A pool, kept up to date. */
export const usePool = (pool: string) =>
  useWatch(`pool ${pool}`, (signal) =>
    api.GET("/v1/pools/{sort}/{name}", { params: { path: { sort: sortOf(pool), name: nameOf(pool) } }, signal }),
  );

function Brief({ of }: { of: Pool }) {
  const { queue, kind } = of;
  const all = inOrder(of);
  const told = kind === "named" ? all : all.filter((slot) => slot.state !== "free");
  const listed = told.slice(0, LISTED);
  const asked = askedOf(listed, ASKED);
  const next = queue?.[0];
  return (
    <>
      <ul class="slots">
        {listed.map((slot) => (
          <li key={slot.slot}>
            <Bench slot={slot} isAsked={asked.has(slot.slot)} />
          </li>
        ))}
        {told.length > LISTED && <li class="faint">and {told.length - LISTED} more</li>}
        {told.length === 0 && <li class="faint">Nobody has any of it.</li>}
      </ul>
      <p class="next">
        {next ? (
          <>
            <b>Next:</b> <JobName id={next.job} name={next.job_name} owner={next.job_owner} />, start <Expected job={next.job} isAsked />
          </>
        ) : (
          <span class="faint">Nobody waits for it.</span>
        )}
      </p>
    </>
  );
}

/** One slot: who has it, for how long, until when. */
function Bench({ slot, isAsked }: { slot: Slot; isAsked: boolean }) {
  return (
    <>
      <b class="slot">{slot.slot}</b>
      <span>
        {slot.state === "held" ? <Who slot={slot} /> : <State of={slot.state} />}
        {slot.state === "held" && (
          <small>
            for <Lasts from={slot.since} />; until: <Until slot={slot} isAsked={isAsked} />
          </small>
        )}
      </span>
    </>
  );
}
