/** The history of a pool on its page: asked for when it is looked at, and each minute after that. */

import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useWatch } from "../../api/watch";
import { Shown } from "../page";
import { History, type Span } from "./history";
import { nameOf, sortOf } from "./pressure";

const DAYS = { day: 1, month: 31 } as const;
/** The hours are counted each minute; a chart of a day shows little of that. */
const COUNTED_EVERY = 120;

export function Past({ pool }: { pool: string }) {
  const [span, setSpan] = useState<Span>("day");
  const series = useWatch(`series ${pool} ${span}`, (signal) => ask(pool, span, signal), { every: COUNTED_EVERY });
  return (
    <Shown of={series}>
      {({ items, since, until }) => <History hours={items} since={since} until={until} span={span} onSpan={setSpan} />}
    </Shown>
  );
}

function ask(pool: string, span: Span, signal: AbortSignal) {
  const since = new Date(Date.now() - DAYS[span] * 24 * 3600 * 1000).toISOString();
  const path = { sort: sortOf(pool), name: nameOf(pool) };
  return api.GET("/v1/pools/{sort}/{name}/series", { params: { path, query: { since } }, signal });
}
