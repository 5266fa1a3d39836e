/** The journal of a unit: each decision about it, by whom and why. The newest entry is first. */

import { useEffect, useRef } from "preact/hooks";

import type { Schemas } from "../../api/client";
import { useWatch } from "../../api/watch";
import { Copy } from "../action";
import { Linked } from "../linked";
import { Shown } from "../page";
import { Table, type Column } from "../table";
import { exact, When } from "../time";
import { getEvents, newsOf, type Unit, WORDS } from "./kinds";

type Entry = Schemas["UnitEvent"];

const COLUMNS: Column<Entry>[] = [
  { title: "No", cell: (entry) => entry.seq },
  { title: "Time", cell: (entry) => <span title={exact(entry.time)}>{clock(entry.time)}</span> },
  { title: "Ago", cell: (entry) => <When at={entry.time} />, isMinor: true },
  {
    title: "Entry",
    cell: (entry) => (
      <span class="lines">
        <Linked text={entry.payload} />
      </span>
    ),
  },
];

/** Seconds. Whatever changes the unit has an entry, and the unit is watched; others, such as reminders, are seldom. */
const SELDOM = 300;

/** When it is looked for console output that was asked for, in seconds from then. */
const SOON = [1, 3, 6, 12, 24];

/** The service keeps few entries of a unit, so that all are asked for at once. */
export function Journal({ of, asked }: { of: Unit; asked: number }) {
  const events = useWatch(`events ${of.id}`, (signal) => getEvents(of.kind, of.id, 0, signal), {
    isLast: ({ state }) => state === "gone",
    every: SELDOM,
  });
  const news = JSON.stringify(newsOf(of));
  const before = useRef(news);
  useEffect(() => {
    if (before.current !== news) events.refresh();
    before.current = news;
  }, [news]);
  useEffect(() => {
    const timers = asked ? SOON.map((seconds) => setTimeout(events.refresh, seconds * 1000)) : [];
    return () => timers.forEach(clearTimeout);
  }, [asked]);
  return (
    <Shown of={events}>
      {({ items }) => (
        <>
          <Table
            caption="Journal"
            columns={COLUMNS}
            rows={[...items].reverse()}
            id={(entry) => String(entry.seq)}
            empty="Nothing happened to it yet."
          />
          <p class="faint">
            {items[0] && items[0].seq > 1 && `Entries before number ${items[0].seq} are no longer kept. `}
            <Copy text={`penstock ${WORDS[of.kind].one} tail --follow ${of.id}`} title="Copy as command" />
          </p>
        </>
      )}
    </Shown>
  );
}

/** A moment to the millisecond, for entries follow each other closely. */
const clock = (at: string): string =>
  new Date(at).toLocaleString(undefined, {
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hour12: false,
  });
