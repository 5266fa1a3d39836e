/** One pool: its slots and their holders, its queue, and what operators did to it. */

import { useParams } from "wouter-preact";

import { Audit } from "../parts/audit";
import { Page, Shown } from "../parts/page";
import { PoolActions } from "../parts/pools/actions";
import { usePool } from "../parts/pools/card";
import { Bar, Numbers, Troubles } from "../parts/pools/numbers";
import { Past } from "../parts/pools/past";
import { Queue } from "../parts/pools/queue";
import { Slots } from "../parts/pools/slots";
import { useSession } from "../session";

export default function Pool() {
  const { sort, name } = useParams<{ sort: string; name: string }>();
  const { isOperator } = useSession();
  const pool = usePool(`${sort}/${name}`);
  const actions = pool.value && <PoolActions of={pool.value} then={pool.refresh} />;
  return (
    <Page title={`${sort}/${name}`} path={[{ title: "Pools", to: "/pools" }]} actions={actions}>
      <Shown of={pool}>
        {(found) => (
          <>
            <section class="card pool-sum" aria-label="Now">
              <Bar of={found} />
              <Numbers of={found} />
              <Troubles of={found} />
            </section>
            {found.kind !== "amount" && (
              <section class="part">
                <h2>Slots</h2>
                <Slots of={found} />
              </section>
            )}
            <section class="part">
              <h2>Queue</h2>
              <Queue of={found.queue ?? []} waiting={found.waiting} />
            </section>
            <section class="part">
              <h2>History</h2>
              <Past pool={found.pool} />
            </section>
            {isOperator && (
              <section class="part">
                <h2>Changes</h2>
                <Audit what={`pool ${found.pool}`} changes={[found.limit, found.paused, found.pause, found.resized]} />
              </section>
            )}
          </>
        )}
      </Shown>
    </Page>
  );
}
