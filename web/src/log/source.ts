/** Loads a job's log: first its end, then what is looked at, and new lines while somebody looks. */

import { type Answer, api, ask, Refused, type Schemas } from "../api/client";
import { Folding } from "./folding";
import { CHUNK, Lines } from "./lines";
import { pace } from "./pace";
import type { Range } from "./rows";

/**
 * A log of at most so many lines, in so many requests, is loaded as a whole: then its tasks can be folded. Of a longer one
 * what is looked at is loaded, until all is needed. A job that prints slowly has many small pages while it runs.
 */
const ALL_LINES = 20_000;
const ALL_REQUESTS = 25;
/** How many characters are kept; what was not looked at for longest is loaded again when it is. */
const MOST_CHARACTERS = 192 * 1024 ** 2;
const AT_ONCE = 3;

type Page = Schemas["EventPage"];
type Line = Schemas["EventView"];

export class LogSource {
  readonly lines = new Lines();
  readonly folding = new Folding();
  state: Page["state"] | undefined;
  error: Refused | undefined;
  private isAllWanted = false;
  private requests = 0;
  /** With this, lines come from a cache that all readers of the log share; undefined where there is none. */
  private key: string | undefined;
  private wanted: [number, number] = [0, -1];
  private readonly loading = new Map<number, Promise<void>>();
  private readonly abort = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private quiet = 0;
  private isAsking = false;
  /** Whether there are probably more lines at once. */
  private isBehind = false;

  constructor(
    private readonly job: string,
    private readonly changed: () => void,
  ) {
    document.addEventListener("visibilitychange", this.nudge);
    void this.follow();
  }

  end(): void {
    document.removeEventListener("visibilitychange", this.nudge);
    clearTimeout(this.timer);
    this.abort.abort();
  }

  /** Ask soon: the page was hidden until now, or the job has changed. */
  nudge = (): void => {
    this.quiet = 0;
    clearTimeout(this.timer);
    if (!document.hidden) void this.follow();
  };

  /** Whether all lines are to be loaded: somebody wants to fold them, or they are few. */
  get isAll(): boolean {
    return this.isAllWanted || (this.lines.total <= ALL_LINES && this.requests < ALL_REQUESTS);
  }

  /** Whether every line that there is has been loaded once. */
  get isWhole(): boolean {
    return this.state !== undefined && this.folding.sections.done >= this.lines.total;
  }

  /** These lines are shown: load them before others. */
  want(from: number, to: number): void {
    this.wanted = [from, to];
    this.lines.touch(from, to);
    this.fill();
  }

  wantAll(): void {
    this.isAllWanted = true;
    this.fill();
  }

  /** Load a whole chunk, if it is not there, and begin with those after it. Throws Refused. */
  async chunk(index: number): Promise<void> {
    for (let next = index + 1; next < Math.min(index + AT_ONCE, this.lines.chunkCount); next++) {
      if (!this.loading.has(next) && !this.lines.isFilled(next)) this.load(next, true).catch(() => undefined); // it is asked for again
    }
    await this.loading.get(index);
    if (!this.lines.isFilled(index)) await this.load(index, true);
  }

  /** New lines, and whether the job goes on. While the page is hidden nothing is asked. */
  private async follow(): Promise<void> {
    if (this.isAsking || this.abort.signal.aborted) return;
    this.isAsking = true;
    try {
      const before = this.lines.total;
      const isFirst = this.state === undefined;
      const page = await this.ask(isFirst ? { last: 1, limit: 1 } : { after: before, limit: CHUNK });
      this.take(page);
      this.quiet = this.lines.total > before ? 0 : this.quiet + 1;
      this.isBehind = !isFirst && page.items.length >= CHUNK / 2;
      this.fill();
    } catch (error) {
      this.fail(error);
    } finally {
      this.isAsking = false;
    }
    this.again();
  }

  private again(): void {
    const seconds = this.isBehind && !this.error ? 0 : pace(this.state, this.quiet, this.error?.status, this.key !== undefined);
    clearTimeout(this.timer);
    if (seconds === undefined || document.hidden || this.abort.signal.aborted) return;
    this.timer = setTimeout(() => void this.follow(), seconds * 1000);
  }

  private async ask(query: { after?: number; last?: number; limit: number }): Promise<Page> {
    const { signal } = this.abort;
    const path = { job: this.job };
    if (query.last === undefined) {
      const get = (key: string) => api.GET("/v1/logs/{job}", { params: { path, query: { ...query, key } }, signal });
      const shared = await this.byKey(get);
      if (shared) return shared;
    }
    const page = await ask(api.GET("/v1/jobs/{job}/events", { params: { path, query }, signal }));
    this.key = page.key ?? undefined;
    return page;
  }

  /** What the shared cache has; undefined without a good key. The next page of events has a new one. */
  private async byKey<T>(get: (key: string) => Promise<Answer<T>>): Promise<T | undefined> {
    if (this.key === undefined) return undefined;
    try {
      return await ask(get(this.key));
    } catch (error) {
      if (!(error instanceof Refused && error.status === 403)) throw error;
      this.key = undefined;
      return undefined;
    }
  }

  private take(page: Page): void {
    this.state = page.state;
    this.lines.grow(page.total);
    this.store(page.items);
  }

  private store(items: Line[]): void {
    this.error = undefined;
    this.lines.put(items);
    this.folding.sections.feed(this.lines);
    const looked = this.isAll ? this.folding.sections.done : Infinity;
    this.lines.shrink(MOST_CHARACTERS, looked);
    this.changed();
  }

  private fail(error: unknown): void {
    if (this.abort.signal.aborted) return;
    if (!(error instanceof Refused)) throw error;
    this.quiet++;
    this.error = error;
    this.changed();
  }

  /** Begin to load what is wanted, as long as few requests are under way. */
  private fill(): void {
    while (this.loading.size < AT_ONCE) {
      const index = this.nextMissing();
      if (index === undefined) return;
      void this.load(index).then(
        () => this.fill(),
        (error: unknown) => this.fail(error),
      );
    }
  }

  private nextMissing(): number | undefined {
    const isMissing = (index: number) => !this.loading.has(index) && !this.lines.isFilled(index);
    const [from, to] = this.wanted;
    for (let index = Math.floor(from / CHUNK); index <= Math.floor(to / CHUNK); index++) {
      if (isMissing(index) && this.wantedGap(index)) return index;
    }
    if (!this.isAll) return undefined;
    for (let index = Math.floor(this.folding.sections.done / CHUNK); index < this.lines.chunkCount; index++) {
      if (isMissing(index)) return index;
    }
    return undefined;
  }

  private load(index: number, isWhole = false): Promise<void> {
    const work = this.loadChunk(index, isWhole).finally(() => this.loading.delete(index));
    this.loading.set(index, work);
    return work;
  }

  /** A page may have fewer lines than were asked for; only an empty one says that there are no more. */
  private async loadChunk(index: number, isWhole: boolean): Promise<void> {
    for (let gap = this.gap(index, isWhole); gap; gap = this.gap(index, isWhole)) {
      this.requests++;
      const items = this.isSegment(index) ? await this.segment(index) : await this.between(gap);
      if (items.length === 0) return;
    }
  }

  /** A full chunk of which nothing is there is a segment: it never changes, so browsers and caches keep it. */
  private isSegment(index: number): boolean {
    return !this.lines.chunk(index) && this.lines.length(index) === CHUNK;
  }

  private async segment(index: number): Promise<Line[]> {
    const path = { job: this.job, segment: String(index) };
    const { signal } = this.abort;
    const get = (key: string) => api.GET("/v1/logs/{job}/{segment}", { params: { path, query: { key } }, signal });
    const shared = await this.byKey(get);
    const { items } = shared ?? (await ask(api.GET("/v1/jobs/{job}/events/{segment}", { params: { path }, signal })));
    this.store(items);
    return items;
  }

  private async between([from, to]: Range): Promise<Line[]> {
    const page = await this.ask({ after: from, limit: to - from });
    this.take(page);
    return page.items;
  }

  /** What to load next of a chunk: what is shown of it before the rest. */
  private gap(index: number, isWhole: boolean): Range | undefined {
    const rest = () => this.lines.gap(index * CHUNK, index * CHUNK + this.lines.length(index));
    return this.wantedGap(index) ?? (isWhole || this.isAll ? rest() : undefined);
  }

  private wantedGap(index: number): Range | undefined {
    const [first, last] = this.wanted;
    const end = index * CHUNK + this.lines.length(index);
    return this.lines.gap(Math.max(index * CHUNK, first), Math.min(end, last + 1));
  }
}
