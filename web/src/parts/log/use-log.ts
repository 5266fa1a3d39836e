/** A job's log, and the search in it, as state of a part. */

import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";

import type { Query } from "../../log/find";
import { Search } from "../../log/search";
import { LogSource } from "../../log/source";

/** Draws at most once a frame, however often something changes. */
export function useDraw(): () => void {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const frame = useRef(0);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return useMemo(
    () => () => {
      cancelAnimationFrame(frame.current);
      frame.current = requestAnimationFrame(() => draw(0));
    },
    [],
  );
}

/** The log, loaded while this part is shown. `state`: the job's, as the page knows it. */
export function useLog(job: string, state: string | undefined): LogSource | undefined {
  const draw = useDraw();
  const [source, setSource] = useState<LogSource>();
  useEffect(() => {
    const made = new LogSource(job, draw);
    setSource(made);
    return () => made.end();
  }, [job]);
  useEffect(() => {
    if (source?.state !== undefined && state !== undefined && source.state !== state) source.nudge();
  }, [source, state]);
  return source;
}

/** The search for a text, which goes on as lines come; undefined while nothing is searched. */
export function useSearch(source: LogSource, query: Query): Search | undefined {
  const draw = useDraw();
  const [search, setSearch] = useState<Search>();
  useEffect(() => {
    if (!query.text) return setSearch(undefined);
    const timer = setTimeout(() => setSearch(new Search(source, query, draw)), 150);
    return () => clearTimeout(timer);
  }, [source, query.text, query.isExact]);
  useEffect(() => () => search?.end(), [search]);
  const { total } = source.lines;
  useEffect(() => void search?.go(), [search, total]);
  return search;
}
