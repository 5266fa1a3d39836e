/** What a pool had over a day or a month: held, idle, waiting, and its limit. As lines, and as a table of the same hours. */

import { useMemo, useState } from "preact/hooks";

import { Chart, type Line } from "../chart";
import { Table, type Column } from "../table";
import { daysOf, type Hour, hourAt, pointsOf, rounded, type Step } from "./hours";

const LINES: readonly Line[] = [
  { title: "held", colour: "live", isFilled: true },
  { title: "idle", colour: "good", dash: [8, 4] },
  { title: "waiting", colour: "wait", dash: [2, 3] },
  { title: "limit", colour: "off", dash: [12, 3, 2, 3] },
];

export type Span = "day" | "month";

const columns = (step: Step): Column<Hour>[] => [
  { title: "From", cell: ({ start }) => <time dateTime={start}>{time(start, step)}</time> },
  { title: "Held", cell: ({ mean, most }) => `${rounded(mean.held)} (at most ${most.held})`, isNumber: true },
  { title: "Idle", cell: ({ mean, most }) => `${rounded(mean.idle)} (at most ${most.idle})`, isNumber: true },
  { title: "Waiting", cell: ({ mean, most }) => `${rounded(mean.waiting)} (at most ${most.waiting})`, isNumber: true },
  { title: "Limit", cell: ({ limit }) => limit, isNumber: true },
];

interface Props {
  hours: readonly Hour[];
  /** The ends of the time that is shown, as RFC 3339. */
  since: string;
  until: string;
  span: Span;
  onSpan: (span: Span) => void;
}

export function History({ hours, since, until, span, onSpan }: Props) {
  const [index, setIndex] = useState<number>();
  const step = span === "day" ? "hour" : "day";
  const steps = useMemo(() => (step === "hour" ? hours : daysOf(hours)), [hours, step]);
  const points = useMemo(() => pointsOf(steps, step), [steps, step]);
  const at = index === undefined ? undefined : points[0][index];
  const pointed = at === undefined ? undefined : hourAt(steps, at, step);
  const range: [number, number] = [Date.parse(since) / 1000, Date.parse(until) / 1000];
  return (
    <div class="card history">
      <div class="page-top">
        <Legend of={pointed} step={step} />
        <Spans span={span} onSpan={onSpan} />
      </div>
      {hours.length === 0 ? (
        <p class="empty">Nothing was counted in this time.</p>
      ) : (
        <Chart
          label={`Means of each ${step} over a ${span}. The table has the same numbers.`}
          lines={LINES}
          points={points}
          range={range}
          onPoint={setIndex}
        />
      )}
      {hours.length > 0 && <Numbers of={steps} step={step} />}
    </div>
  );
}

function Spans({ span, onSpan }: Pick<Props, "span" | "onSpan">) {
  return (
    <div class="actions" role="group" aria-label="Time">
      {(["day", "month"] as const).map((each) => (
        <button key={each} type="button" aria-pressed={each === span} onClick={() => onSpan(each)}>
          {each === "day" ? "Day" : "Month"}
        </button>
      ))}
    </div>
  );
}

/** What the lines are, and their values in the hour that is pointed at. */
function Legend({ of, step }: { of: Hour | undefined; step: Step }) {
  const values = of && [of.mean.held, of.mean.idle, of.mean.waiting, of.limit];
  return (
    <ul class="legend">
      {LINES.map(({ title, colour, dash }, index) => (
        <li key={title}>
          <svg class={colour} width="28" height="10" aria-hidden="true">
            <line x1="0" y1="5" x2="28" y2="5" stroke="currentColor" stroke-width="2" stroke-dasharray={dash?.join(" ")} />
          </svg>
          {title}
          {values && <b> {rounded(values[index] ?? 0)}</b>}
        </li>
      ))}
      <li class="faint">{of ? time(of.start, step) : `means of each ${step}`}</li>
    </ul>
  );
}

function Numbers({ of, step }: { of: readonly Hour[]; step: Step }) {
  const [isShown, setShown] = useState(false);
  return (
    <details onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>As a table: {of.length} {step}s</summary>
      {isShown && (
        <Table
          caption="History, the newest first"
          columns={columns(step)}
          rows={[...of].reverse()}
          id={({ start }) => start}
          empty=""
        />
      )}
    </details>
  );
}

const time = (start: string, step: Step): string =>
  new Date(start).toLocaleString(undefined, {
    weekday: "short",
    month: "short",
    day: "numeric",
    ...(step === "hour" && { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
  });
