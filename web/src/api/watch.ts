/** Watching what the service shows: asked again while somebody looks, ever less often while nothing changes. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { type Answer, Refused, reply } from "./client";

const FIRST_SECONDS = 2;
const SLOWER = 1.5;
const LAST_SECONDS = 30;

export interface Watched<T> {
  /** What was last shown; undefined until the first answer. */
  value: T | undefined;
  /** Why the last request was refused; undefined if it was not. */
  error: Refused | undefined;
  /** Ask now, for example after an action. */
  refresh: () => void;
}

interface Options<T> {
  /** Whether an answer is the last one: what has settled is not asked for again. */
  isLast?: (value: T) => boolean;
  /** Ask each so many seconds, whatever the answer: for what is another with each request, such as an estimate. */
  every?: number;
  /** After how many seconds it is asked again at the latest: more for what changes seldom, or costs much to answer. */
  slowest?: number;
  /** What of an answer is news if it differs. By default all is: give it where estimates or due times move by themselves. */
  news?: (value: T) => unknown;
}

/**
 * What a request gives, kept up to date while the page is visible.
 *
 * It is asked again after 2 seconds, and after ever longer until 30 seconds (or `slowest`) while the answer stays the
 * same. A hidden page asks nothing. `key` names what is asked for: another key forgets the answer.
 */
export function useWatch<T>(
  key: string,
  request: (signal: AbortSignal) => Promise<Answer<T>>,
  { isLast, every, slowest = LAST_SECONDS, news }: Options<T> = {},
): Watched<T> {
  const [shown, setShown] = useState<{ key: string; value?: T; error?: Refused }>({ key });
  const [asked, setAsked] = useState(0);
  const latest = useRef({ request, isLast, every, slowest, news });
  latest.current = { request, isLast, every, slowest, news };

  useEffect(() => {
    const round = new Round<T>(latest.current, (found) => setShown({ key, ...found }));
    return () => round.end();
  }, [key, asked]);

  const refresh = useCallback(() => setAsked((count) => count + 1), []);
  const current = shown.key === key ? shown : { key };
  return { value: current.value, error: current.error, refresh };
}

type Found<T> = { value?: T; error?: Refused };
type Asks<T> = {
  request: (signal: AbortSignal) => Promise<Answer<T>>;
  isLast: ((value: T) => boolean) | undefined;
  every: number | undefined;
  slowest: number;
  news: ((value: T) => unknown) | undefined;
};

/** The requests for one thing, one after the other. */
class Round<T> {
  private seconds = FIRST_SECONDS;
  private last = "";
  private lastNews = "";
  private value: T | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly abort = new AbortController();
  private isOver = false;
  private isAsking = false;

  constructor(
    private readonly asks: Asks<T>,
    private readonly show: (found: Found<T>) => void,
  ) {
    document.addEventListener("visibilitychange", this.look);
    void this.ask();
  }

  end(): void {
    this.isOver = true;
    document.removeEventListener("visibilitychange", this.look);
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private look = (): void => {
    clearTimeout(this.timer);
    if (document.hidden || this.isOver) return;
    this.seconds = FIRST_SECONDS;
    void this.ask();
  };

  private async ask(): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      this.take(await reply(this.asks.request(this.abort.signal)));
    } catch (error) {
      this.fail(error);
    } finally {
      this.isAsking = false;
    }
    if (!this.isOver && !document.hidden) this.timer = setTimeout(() => void this.ask(), this.seconds * 1000);
  }

  private take({ data, response }: Answer<T>): void {
    const value = data as T;
    const tag = response.headers.get("etag") ?? JSON.stringify(value);
    const isSame = tag === this.last;
    const isOld = this.isOld(value, isSame);
    this.seconds = this.asks.every ?? (isOld ? Math.min(this.seconds * SLOWER, this.asks.slowest) : FIRST_SECONDS);
    this.last = tag;
    this.value = isSame ? this.value : value;
    if (this.isOver) return;
    this.show({ value: this.value as T });
    if (this.asks.isLast?.(value)) this.end();
  }

  /** Whether nothing about an answer is news. */
  private isOld(value: T, isSame: boolean): boolean {
    if (!this.asks.news) return isSame;
    const found = JSON.stringify(this.asks.news(value));
    const isOld = found === this.lastNews;
    this.lastNews = found;
    return isOld;
  }

  private fail(error: unknown): void {
    if (this.isOver || !(error instanceof Refused)) return;
    this.seconds = Math.min(this.seconds * 2, LAST_SECONDS);
    this.show(this.value === undefined ? { error } : { value: this.value, error });
    if (error.status >= 400 && error.status < 429) this.end();
  }
}
