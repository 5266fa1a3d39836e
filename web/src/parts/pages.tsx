/** Lists that come in pages: the first is kept up to date, those after it are loaded on demand. */

import { useEffect, useState } from "preact/hooks";

import { type Answer, ask, Refused } from "../api/client";
import { useWatch, type Watched } from "../api/watch";
import { say } from "./notices";

interface Listed<Row> {
  items: Row[];
  next?: string | null;
}

/** All rows that were loaded so far, and a way to load more. */
export function usePages<Row>(
  key: string,
  request: (page: string, signal?: AbortSignal) => Promise<Answer<Listed<Row>>>,
  options: { every?: number; isLast?: () => boolean; news?: (page: Listed<Row>) => unknown } = {},
): Watched<Listed<Row>> & { rows: Row[]; more: (() => void) | undefined } {
  const first = useWatch(key, (signal) => request("", signal), options);
  const [later, setLater] = useState<Listed<Row>[]>([]);
  useEffect(() => setLater([]), [key]);
  const last = later.at(-1) ?? first.value;
  const load = async (page: string) => {
    try {
      const found = await ask(request(page));
      setLater((before) => [...before, found]);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      say(error.detail, "bad");
    }
  };
  const next = last?.next;
  return {
    ...first,
    rows: [...(first.value?.items ?? []), ...later.flatMap((each) => each.items)],
    more: next ? () => void load(next) : undefined,
  };
}

/** The button that loads more rows, if there are more. */
export function More({ load }: { load: (() => void) | undefined }) {
  if (!load) return null;
  return (
    <button type="button" onClick={load}>
      Show more
    </button>
  );
}
