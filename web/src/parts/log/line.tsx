/** One line of a log: its number, time and text. */

import type { JSX } from "preact";
import { memo } from "preact/compat";

import { marked, overwritten, plain, type Span, spans } from "../../log/ansi";
import { places, type Query } from "../../log/find";
import type { Section } from "../../log/folds";
import type { LogLine } from "../../log/lines";
import { duration, exact } from "../time";

interface Props {
  line: LogLine;
  hasTimes: boolean;
  query: Query | undefined;
  section: Section | undefined;
  /** How many lines the section has: it grows. */
  size: number;
  isFolded: boolean;
  /** Whether the section may still grow. */
  isOpen: boolean;
  onFold: (key: string) => void;
  onLink: (seq: number, isRange: boolean) => void;
}

/** Streams that the service or its agent writes, and their signs. Others are the job's own output. */
const SIGNS: Record<string, string> = { control: "=", detail: "=", task: "T", worker: "W", console: "C" };

export const Line = memo(function Line({ line, hasTimes, query, section, isFolded, isOpen, onFold, onLink }: Props) {
  const open = (event: JSX.TargetedMouseEvent<HTMLAnchorElement>) => {
    if (event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    onLink(line.seq, event.shiftKey);
  };
  return (
    <>
      <a class="log-number" href={`#L${line.seq}`} tabIndex={-1} onClick={open} aria-label={`Line ${line.seq}`}>
        {line.seq}
      </a>
      {hasTimes && (
        <time class="log-time" dateTime={new Date(line.time).toISOString()} title={exact(line.time)}>
          {clock(line.time)}
        </time>
      )}
      <span class="log-text">
        <Stream of={line.stream} />
        <Text of={line.text} query={query} />
        {section && <Head section={section} isFolded={isFolded} isOpen={isOpen} onFold={onFold} />}
      </span>
    </>
  );
}, isSame);

/** A line never changes, so it is drawn again only when something around it does. */
function isSame(before: Props, now: Props): boolean {
  const names = ["hasTimes", "query", "section", "size", "isFolded", "isOpen", "onFold", "onLink"] as const;
  return before.line.seq === now.line.seq && names.every((name) => before[name] === now[name]);
}

function Stream({ of }: { of: string }) {
  if (of === "stdout" || of === "stderr") return null;
  return (
    <span class="log-stream" title={`stream ${of}`}>
      {SIGNS[of] ?? of}
    </span>
  );
}

function Text({ of, query }: { of: string; query: Query | undefined }) {
  const all = spans(of);
  const ranges = query ? places(plain(of), query) : [];
  const earlier = overwritten(of);
  return (
    <>
      {earlier > 0 && (
        <span class="log-stream" title={`${earlier} earlier versions of this line were overwritten; the downloaded log has them`}>
          ↩
        </span>
      )}
      {ranges.length > 0 ? marked(all, ranges).map(piece) : all.map(piece)}
    </>
  );
}

/** Colours that a job chose for its own terminal are mixed with ours, so that they can be read in light and dark. */
function piece(each: Span & { isMarked?: boolean }, index: number) {
  const style = {
    ...(each.color && { color: `color-mix(in srgb, ${each.color} 40%, var(--text))` }),
    ...(each.background && { background: `color-mix(in srgb, ${each.background} 14%, var(--card))` }),
  };
  if (each.isMarked) return <mark key={index}>{each.text}</mark>;
  if (!each.classes && !each.color && !each.background) return each.text;
  return (
    <span key={index} class={each.classes} style={style}>
      {each.text}
    </span>
  );
}

function Head({ section, isFolded, isOpen, onFold }: Pick<Props, "isFolded" | "isOpen" | "onFold"> & { section: Section }) {
  const name = section.task < 0 ? "before the script" : `task ${section.task}`;
  const milliseconds = section.last - section.first;
  const took = milliseconds < 1000 ? `${milliseconds} ms` : duration(milliseconds / 1000);
  return (
    <button
      type="button"
      class="log-fold"
      aria-expanded={!isFolded}
      title="From its first line to its last"
      onClick={() => onFold(section.key)}
    >
      <span aria-hidden="true">{isFolded ? "▸" : "▾"}</span> {name} · {took}
      {isOpen && " so far"} · {section.count.toLocaleString()} lines
    </button>
  );
}

const two = (value: number) => String(value).padStart(2, "0");

/** The time of day here, with milliseconds. */
function clock(time: number): string {
  const at = new Date(time);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}
