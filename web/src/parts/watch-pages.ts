/** Lists that come in pages, of which all that were loaded are kept up to date, and not only the first. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { Answer } from "../api/client";
import { useWatch, type Watched } from "../api/watch";

export interface Listed<Row> {
  items: Row[];
  next?: string | null;
}

interface Options<Row> {
  /** Whether nothing about a row will change any more. */
  isOver: (row: Row) => boolean;
  /** How many pages are loaded at first. */
  pages?: number;
}

export interface Rows<Row, Page extends Listed<Row> = Listed<Row>> extends Watched<Page> {
  rows: Row[];
  /** Loads one page more; undefined if there is none. */
  more: (() => void) | undefined;
}

/**
 * The rows of the first pages of a list, watched.
 *
 * A later page of which everything is over, and which another one follows, is not asked for again: its place in the list is
 * a row's id, so new rows move none into it.
 */
export function useWatchedPages<Row, Page extends Listed<Row> = Listed<Row>>(
  key: string,
  request: (page: string, signal: AbortSignal) => Promise<Answer<Page>>,
  { isOver, pages = 1 }: Options<Row>,
): Rows<Row, Page> {
  const [wanted, setWanted] = useState({ key, pages });
  const count = wanted.key === key ? wanted.pages : pages;
  const over = useRef<{ key: string; pages: Map<string, Page> }>({ key, pages: new Map() });
  if (over.current.key !== key) over.current = { key, pages: new Map() };

  const found = useWatch(key, (signal) => load(count, (page) => request(page, signal), over.current.pages, isOver));
  useEffect(() => {
    if (count > pages) found.refresh();
  }, [count]);
  return {
    ...found,
    rows: found.value?.items ?? [],
    more: found.value?.next ? () => setWanted({ key, pages: count + 1 }) : undefined,
  };
}

/** The first page, with the rows of those after it. */
async function load<Row, Page extends Listed<Row>>(
  count: number,
  request: (page: string) => Promise<Answer<Page>>,
  over: Map<string, Page>,
  isOver: (row: Row) => boolean,
): Promise<Answer<Page>> {
  const first = await request("");
  if (!first.data || count === 1) return first;
  const items = [...first.data.items];
  let next = first.data.next;
  for (let number = 1; number < count && next; number++) {
    const page: string = next;
    const known = over.get(page);
    const answer: Answer<Page> = known ? { data: known, response: first.response } : await request(page);
    if (!answer.data) return answer;
    if (answer.data.next && answer.data.items.every(isOver)) over.set(page, answer.data); // others may follow on the last one
    items.push(...answer.data.items);
    next = answer.data.next;
  }
  const data: Page = { ...first.data, items, next: next ?? null };
  return { data, response: new Response(null) }; // without the ETag, which is of one page
}
