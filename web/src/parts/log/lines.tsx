/** The lines of a log that are in sight, in a list of any length. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Query } from "../../log/find";
import type { Span } from "../../log/links";
import type { Rows } from "../../log/rows";
import type { LogSource } from "../../log/source";
import { Line } from "./line";
import type { View } from "./log";
import { highest, useVirtual, type Virtual } from "./virtual";

interface Props {
  source: LogSource;
  view: View;
  query: Query | undefined;
  /** Lines that are marked, counted from 1. */
  span: Span | undefined;
  /** The line to show; another object shows it again. */
  target: { line: number } | undefined;
  isFollowing: boolean;
  onFollow: (isFollowing: boolean) => void;
  onLink: (seq: number, isRange: boolean) => void;
  fold: (change: () => void) => void;
}

const NEAR_END = 4;
/** So many wrapped lines stay below the highest element, and are measured again within a frame. */
const MOST_WRAPPED = 50_000;

export function Lines(props: Props) {
  const { source, view, isFollowing, onFollow } = props;
  const box = useRef<HTMLDivElement>(null);
  const { total } = source.lines;
  const rows = source.folding.rows(total);
  const size = useSizes(box, view, source.lines.loaded > 0);
  const part = useParts(rows, size.row, view.isWrapped, props.target?.line, isFollowing);
  const keyOf = useMemo(() => (index: number) => rows.lineOf(part.first + index), [rows, part.first]);
  const virtual = useVirtual({
    count: part.count,
    overscan: view.isWrapped ? 3 : 8,
    getScrollElement: () => box.current,
    estimateSize: view.isWrapped ? (index) => size.of(source.lines.width(keyOf(index))) : () => size.row,
    // not rounded, as the library has it: each row that is as high as reckoned would be one of another height
    measureElement: (element) => element.getBoundingClientRect().height,
    getItemKey: keyOf, // the list measures all rows again when this is another function
  });
  useEffect(() => virtual.measure(), [view.isWrapped, view.hasTimes, size.columns, size.row]);
  useTarget(virtual, rows, part.first, props.target, total);
  useFollow(box, isFollowing, onFollow, part.at === part.all - 1, virtual.getTotalSize());

  const items = virtual.getVirtualItems();
  const first = items[0];
  const last = items.at(-1);
  const [from, to] = first && last ? [rows.lineOf(part.first + first.index), rows.lineOf(part.first + last.index)] : [0, -1];
  useEffect(() => source.want(from, to), [source, from, to, total]);
  return (
    <>
      {part.all > 1 && <Parts {...part} total={rows.count} />}
      <div class={view.isWrapped ? "log-box wrapped" : "log-box"} ref={box} tabIndex={0} role="region" aria-label="Lines of the log">
        {total === 0 && <p class="empty">{source.state === undefined ? "Loading…" : "Nothing was logged yet."}</p>}
        <div class="log-all" style={{ height: `${virtual.getTotalSize()}px` }}>
          <div class="log-seen" style={{ transform: `translateY(${first?.start ?? 0}px)` }}>
            {items.map((item) => (
              <Row key={item.key} {...props} line={rows.lineOf(part.first + item.index)} index={item.index} virtual={virtual} />
            ))}
          </div>
        </div>
      </div>
      {!isFollowing && total > 0 && (
        <button type="button" class="log-end main" onClick={() => onFollow(true)}>
          Jump to the end
        </button>
      )}
    </>
  );
}

function Row({ source, view, query, span, line, index, virtual, fold, onLink }: Props & { line: number; index: number; virtual: Virtual }) {
  const found = source.lines.get(line);
  const isMarked = span !== undefined && span[0] <= line + 1 && line + 1 <= span[1];
  const section = source.isWhole ? source.folding.sections.byHead.get(line) : undefined;
  const classes = ["log-line", found && `stream-${found.stream}`, isMarked && "linked", section && "head"].filter(Boolean).join(" ");
  const measured = view.isWrapped ? { ref: virtual.measureElement } : {};
  const calls = useRef({ fold, onLink });
  calls.current = { fold, onLink };
  const onFold = useMemo(() => (key: string) => calls.current.fold(() => source.folding.toggle(key)), [source]);
  const onOpen = useMemo(() => (seq: number, isRange: boolean) => calls.current.onLink(seq, isRange), []);
  return (
    <div class={classes} data-index={index} data-line={line + 1} {...measured}>
      {found ? (
        <Line
          line={found}
          hasTimes={view.hasTimes}
          query={query}
          section={section && section.count > 1 ? section : undefined}
          size={section?.count ?? 0}
          isFolded={section ? source.folding.isFolded(section.key) : false}
          isOpen={source.state !== "settled" && section !== undefined && isLast(source, section.attempt, section.task)}
          onFold={onFold}
          onLink={onOpen}
        />
      ) : (
        <span class="log-number">{line + 1}</span>
      )}
    </div>
  );
}

/** Whether no later section of the log was begun. */
function isLast(source: LogSource, attempt: number, task: number): boolean {
  const all = [...source.folding.sections.byHead.values()];
  return !all.some((each) => each.attempt > attempt || (each.attempt === attempt && each.task > task));
}

interface Part {
  /** The first row of the part that is shown, and how many it has. */
  first: number;
  count: number;
  at: number;
  all: number;
  show: (at: number) => void;
}

/** A list that would be higher than the browser can show is shown in parts. */
function useParts(rows: Rows, row: number, isWrapped: boolean, target: number | undefined, isFollowing: boolean): Part {
  const most = useMemo(() => Math.floor(highest() / row), [row]);
  const each = isWrapped ? Math.min(most, MOST_WRAPPED) : most;
  const all = Math.max(1, Math.ceil(rows.count / each));
  const [chosen, show] = useState(all - 1);
  const wanted = isFollowing ? all - 1 : Math.min(chosen, all - 1);
  useEffect(() => {
    if (target !== undefined) show(Math.floor(rows.rowOf(target) / each));
  }, [target]);
  useEffect(() => void (isFollowing && show(all - 1)), [isFollowing, all]);
  return { first: wanted * each, count: Math.min(each, rows.count - wanted * each), at: wanted, all, show };
}

function Parts({ at, all, show, first, count, total }: Part & { total: number }) {
  return (
    <nav class="log-parts" aria-label="Parts of the log">
      <button type="button" disabled={at === 0} onClick={() => show(at - 1)}>
        Earlier lines
      </button>
      <span>
        Part {at + 1} of {all}: rows {(first + 1).toLocaleString()} to {(first + count).toLocaleString()} of {total.toLocaleString()}
      </span>
      <button type="button" disabled={at === all - 1} onClick={() => show(at + 1)}>
        Later lines
      </button>
    </nav>
  );
}

/** How high a row is, and how many rows a line needs when it is wrapped. */
function useSizes(box: { current: HTMLDivElement | null }, view: View, isDrawn: boolean) {
  const [measured, setMeasured] = useState({ row: 20, columns: 80 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setMeasured((before) => same(before, measure(element)));
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [view.isWrapped, view.hasTimes, isDrawn]);
  const { row, columns } = measured;
  return { row, columns, of: (width: number) => (view.isWrapped ? Math.max(1, Math.ceil(width / columns)) * row : row) };
}

const same = <T extends { row: number; columns: number }>(before: T, now: T): T =>
  before.row === now.row && before.columns === now.columns ? before : now;

/** Exact for plain text in a fixed font, so that hardly any row turns out to be higher than was reckoned. */
function measure(element: HTMLElement): { row: number; columns: number } {
  const style = getComputedStyle(element);
  const pen = document.createElement("canvas").getContext("2d");
  if (pen) pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const letter = pen?.measureText("0".repeat(100)).width ?? parseFloat(style.fontSize) * 60;
  const width = element.querySelector(".log-text")?.clientWidth ?? element.clientWidth - letter / 10;
  return { row: parseFloat(style.lineHeight), columns: Math.max(10, Math.floor((100 * width) / letter + 0.01)) };
}

/** Show a line that was asked for, once it is there. */
function useTarget(virtual: Virtual, rows: Rows, first: number, target: { line: number } | undefined, total: number): void {
  const shown = useRef<object>();
  useEffect(() => {
    if (!target || shown.current === target || target.line >= total) return;
    const index = rows.rowOf(target.line) - first;
    if (index < 0 || index >= virtual.options.count) return; // in another part, which is shown next
    shown.current = target;
    virtual.scrollToIndex(index, { align: "center" });
  });
}

const UPWARDS = new Set(["ArrowUp", "PageUp", "Home"]);

/** Stay at the end while following; stop once somebody scrolls up, and go on once somebody scrolls to the end. */
function useFollow(box: { current: HTMLDivElement | null }, isFollowing: boolean, onFollow: (is: boolean) => void, isLast: boolean, size: number): void {
  const before = useRef(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !isFollowing) return;
    element.scrollTop = element.scrollHeight;
    before.current = element.scrollTop;
  }, [isFollowing, isLast, size]); // not at each drawing: a scroll is drawn before it is known that it left the end
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const scrolled = () => {
      const { scrollTop, scrollHeight, clientHeight } = element;
      const isAtEnd = isLast && scrollHeight - scrollTop - clientHeight < NEAR_END;
      if (scrollTop < before.current) onFollow(false);
      else if (isAtEnd) onFollow(true);
      before.current = scrollTop;
    };
    // what somebody wants is known before the browser has scrolled, and new lines may come in between
    const leave = (isUp: boolean) => isUp && element.scrollTop > 0 && onFollow(false);
    const wheeled = (event: WheelEvent) => leave(event.deltaY < 0);
    const pressed = (event: KeyboardEvent) => (event.key === "End" ? onFollow(true) : leave(UPWARDS.has(event.key)));
    element.addEventListener("scroll", scrolled, { passive: true });
    element.addEventListener("wheel", wheeled, { passive: true });
    element.addEventListener("keydown", pressed);
    return () => {
      element.removeEventListener("scroll", scrolled);
      element.removeEventListener("wheel", wheeled);
      element.removeEventListener("keydown", pressed);
    };
  }, [onFollow, isLast]);
}
