/** The tools above a log: search, times, wrapping, folds, a line to go to, copy and download. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Refused } from "../../api/client";
import type { Query } from "../../log/find";
import { parseLines, type Span } from "../../log/links";
import type { Search } from "../../log/search";
import type { LogSource } from "../../log/source";
import { texts } from "../../log/text";
import { say } from "../notices";
import type { View } from "./log";

interface FindProps {
  query: Query;
  search: Search | undefined;
  /** The line that was gone to last. */
  at: number;
  total: number;
  onQuery: (query: Query) => void;
  onGo: (line: number) => void;
}

export function Find({ query, search: last, at, total, onQuery, onGo }: FindProps) {
  const search = query.text ? last : undefined; // the last search is replaced only after the text is gone
  const input = useRef<HTMLInputElement>(null);
  useFindKey(input);
  const go = (step: 1 | -1) => {
    const line = search?.found.next(at, step);
    if (line !== undefined) onGo(line);
  };
  const press = (event: JSX.TargetedKeyboardEvent<HTMLInputElement>) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") onQuery({ ...query, text: "" });
  };
  const has = (search?.found.count ?? 0) > 0;
  return (
    <div class="log-find" role="search">
      <label>
        <span class="unseen">Search the log</span>
        <input
          ref={input}
          type="search"
          value={query.text}
          placeholder="Search the log"
          onInput={(event) => onQuery({ ...query, text: event.currentTarget.value })}
          onKeyDown={press}
        />
      </label>
      <Toggle title="Match case" sign="Aa" isOn={query.isExact} onChange={(isExact) => onQuery({ ...query, isExact })} />
      <button type="button" title="Previous match (Shift+Enter)" aria-label="Previous match" disabled={!has} onClick={() => go(-1)}>
        ↑
      </button>
      <button type="button" title="Next match (Enter)" aria-label="Next match" disabled={!has} onClick={() => go(1)}>
        ↓
      </button>
      <span class="log-count" role="status">
        {search ? counted(search, at, total) : ""}
      </span>
    </div>
  );
}

function counted(search: Search, at: number, total: number): string {
  const { found } = search;
  const place = found.place(at);
  const count = `${place ? `${place.toLocaleString()} of ` : ""}${found.count.toLocaleString()} ${found.count === 1 ? "line" : "lines"}`;
  if (search.error) return `${count}; stopped: ${search.error.detail}`;
  return search.isDone ? count : `${count}; searched ${Math.floor((100 * search.looked) / Math.max(1, total))} %`;
}

/** Ctrl+F and / go to the search while one is in the log, or on its own page: the browser's own finds only what is in sight. */
function useFindKey(input: { current: HTMLInputElement | null }): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const log = input.current?.closest(".log");
      const isAsked = event.target instanceof Element && event.target.closest("dialog") !== null;
      const isHere = !isAsked && (log?.classList.contains("full") || log?.contains(event.target as Node));
      const isTyping = event.target instanceof HTMLInputElement;
      const isFind = (event.key === "f" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping);
      if (!isHere || !isFind) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

interface ToolsProps {
  source: LogSource;
  job: string;
  view: View;
  span: Span | undefined;
  onView: (view: View) => void;
  onSpan: (span: Span | undefined) => void;
  fold: (change: () => void) => void;
}

export function Tools({ source, job, view, span, onView, onSpan, fold }: ToolsProps) {
  return (
    <>
      <Toggle title="Times" isOn={view.hasTimes} onChange={(hasTimes) => onView({ ...view, hasTimes })} />
      <Toggle title="Wrap" isOn={view.isWrapped} onChange={(isWrapped) => onView({ ...view, isWrapped })} />
      <Folds source={source} fold={fold} />
      <GoTo total={source.lines.total} span={span} onSpan={onSpan} />
      <Texts source={source} job={job} span={span} hasTimes={view.hasTimes} />
      <Status source={source} />
    </>
  );
}

function Toggle({ title, sign, isOn, onChange }: { title: string; sign?: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <button type="button" class="toggle" aria-pressed={isOn} {...(sign && { title, "aria-label": title })} onClick={() => onChange(!isOn)}>
      {sign ?? title}
    </button>
  );
}

/** Folding needs the whole log: it is known only then where each task begins and ends. */
function Folds({ source, fold }: Pick<ToolsProps, "source" | "fold">) {
  const { folding, isWhole, isAll } = source;
  if (source.state === undefined || (!isWhole && isAll)) return null;
  if (!isWhole)
    return (
      <button type="button" title="Loads all lines, to find where each task begins and ends" onClick={() => source.wantAll()}>
        Find tasks
      </button>
    );
  return (
    <button type="button" onClick={() => fold(() => (folding.isAny ? folding.unfoldAll() : folding.foldAll()))}>
      {folding.isAny ? "Unfold all" : "Fold all"}
    </button>
  );
}

function GoTo({ total, span, onSpan }: { total: number; span: Span | undefined; onSpan: (span: Span | undefined) => void }) {
  const [text, setText] = useState("");
  useEffect(() => setText(span ? (span[0] === span[1] ? String(span[0]) : `${span[0]}-${span[1]}`) : ""), [span?.[0], span?.[1]]);
  const go = () => {
    const found = parseLines(text);
    if (text && (!found || found[0] > total)) return say(`There is no line ${text}; the log has ${total.toLocaleString()}`, "bad");
    onSpan(found);
  };
  return (
    <label class="log-go">
      <span>Line</span>
      <input
        value={text}
        placeholder="12 or 12-20"
        size={9}
        inputMode="numeric"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && go()}
      />
    </label>
  );
}

/** More than this is downloaded, not copied. */
const MOST_COPIED = 20_000_000;

/** Copy and download: the lines that the address names, or all. */
function Texts({ source, job, span, hasTimes }: { source: LogSource; job: string; span: Span | undefined; hasTimes: boolean }) {
  const [isBusy, setBusy] = useState(false);
  const use = async (range: Span | undefined, then: (parts: string[]) => unknown) => {
    setBusy(true);
    try {
      const [from, to] = range ? [range[0] - 1, Math.min(range[1], source.lines.total)] : [0, source.lines.total];
      await then(await texts(source, from, to, hasTimes));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      say(error.detail, "bad");
    } finally {
      setBusy(false);
    }
  };
  const what = span ? `line${span[0] === span[1] ? "" : "s"} ${span[0] === span[1] ? span[0] : `${span[0]}–${span[1]}`}` : "all";
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => void use(span, copy)}>
        Copy {what}
      </button>
      <button type="button" disabled={isBusy} onClick={() => void use(undefined, (parts) => download(parts, `${job}.log`))}>
        Download log
      </button>
    </>
  );
}

async function copy(parts: string[]): Promise<void> {
  const text = parts.join("");
  if (text.length > MOST_COPIED) return say("The log is too long to copy. Download it, or link to the lines that you need.", "bad");
  await navigator.clipboard.writeText(text);
  say(`Copied ${text.length.toLocaleString()} characters`);
}

function download(parts: string[], name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "text/plain;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function Status({ source }: { source: LogSource }) {
  const { lines, isAll, isWhole, state } = source;
  if (state === undefined) return null;
  const loading = isAll && !isWhole ? `, ${Math.floor((100 * source.folding.sections.done) / Math.max(1, lines.total))} % loaded` : "";
  return (
    <span class="log-status">
      {lines.total.toLocaleString()} lines{loading}
      {state === "running" && (
        <span class="state live">
          {" "}
          <span aria-hidden="true">●</span> live
        </span>
      )}
    </span>
  );
}
