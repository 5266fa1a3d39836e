/** A job's log: its tools, and its lines. */

import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";

import "../../style/log.css";
import type { Query } from "../../log/find";
import { linesHash, parseLines, type Span } from "../../log/links";
import type { LogSource } from "../../log/source";
import { Problem } from "../page";
import { Lines } from "./lines";
import { Find, Tools } from "./tools";
import { useLog, useSearch } from "./use-log";

interface Props {
  job: string;
  /** The job's state, as the page knows it. */
  state: string | undefined;
  /** Whether the log is the page's only content. */
  isFull?: boolean;
}

export function Log({ job, state, isFull = false }: Props) {
  const source = useLog(job, state);
  if (!source) return null;
  return (
    <section class={isFull ? "log full" : "log"} aria-label="Log">
      <Shown source={source} job={job} isFull={isFull} />
    </section>
  );
}

/** What is shown of the log: kept in the browser, but for what the address has. */
export interface View {
  hasTimes: boolean;
  isWrapped: boolean;
}

function Shown({ source, job, isFull }: { source: LogSource; job: string; isFull: boolean }) {
  const [view, setView] = useKept();
  const [query, setQuery] = useState<Query>({ text: "", isExact: false });
  const [span, setSpan] = useHash();
  const [isFollowing, setFollowing] = useState(span === undefined);
  const [target, setTarget] = useState<{ line: number } | undefined>(span && { line: span[0] - 1 });
  const [, draw] = useState({});
  const search = useSearch(source, query);

  const go = (line: number) => {
    setFollowing(false);
    source.folding.show(line);
    setTarget({ line });
  };
  const fold = (change: () => void) => {
    change();
    draw({});
  };
  useEffect(() => void (span && go(span[0] - 1)), [span?.[0]]);
  const link = (seq: number, isRange: boolean) => setSpan(isRange && span ? [Math.min(span[0], seq), Math.max(span[0], seq)] : [seq, seq]);
  return (
    <>
      <div class="log-tools" role="toolbar" aria-label="Log">
        <Find query={query} search={search} at={target?.line ?? -1} onQuery={setQuery} onGo={go} total={source.lines.total} />
        <Tools {...{ source, job, view, span, fold }} onView={setView} onSpan={setSpan} />
        {isFull ? null : <Link href={`/jobs/${job}/log`}>Full size</Link>}
      </div>
      {source.error && <Problem error={source.error} retry={source.nudge} />}
      <Lines
        {...{ source, view, span, target, isFollowing, fold }}
        query={search && query.text ? query : undefined}
        onFollow={setFollowing}
        onLink={link}
      />
    </>
  );
}

/** The lines that the address names, and a way to name others. */
function useHash(): [Span | undefined, (span: Span | undefined) => void] {
  const [span, setSpan] = useState(parseLines(location.hash));
  useEffect(() => {
    const look = () => setSpan(parseLines(location.hash));
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  const change = (next: Span | undefined) => {
    history.replaceState(history.state, "", location.pathname + location.search + (next ? linesHash(next) : ""));
    setSpan(next);
  };
  return [span, change];
}

const KEY = "log";

function useKept(): [View, (view: View) => void] {
  const [view, setView] = useState<View>(() => ({ hasTimes: false, isWrapped: false, ...kept() }));
  const change = (next: View) => {
    localStorage.setItem(KEY, JSON.stringify(next));
    setView(next);
  };
  return [view, change];
}

function kept(): Partial<View> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<View>;
  } catch {
    return {}; // somebody else wrote it
  }
}
