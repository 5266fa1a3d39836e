/** The lines of one log, in chunks. A chunk is filled from its start; what is not loaded yet is a gap. */

import { isSpecial, plain } from "./ansi";
import type { Range } from "./rows";

export const CHUNK = 1000;

/** A line as the service sends it. */
export interface LogEvent {
  seq: number;
  time: string;
  stream: string;
  task: number | null;
  attempt: number;
  payload: string;
}

/** A line as it is stored. Lines count from 0 here; `seq` counts from 1. */
export interface LogLine {
  seq: number;
  time: number;
  stream: string;
  /** -1 if no task wrote it. */
  task: number;
  attempt: number;
  text: string;
}

/**
 * A thousand lines. Once it is full it is one string, and numbers in typed arrays: a million lines are a thousand objects.
 *
 * The service sends lines of a running job in small pages, so a chunk may have gaps while it is loaded.
 */
export class Chunk {
  /** How many lines it has. */
  count = 0;
  /** How many characters they have. */
  size = 0;
  /** Whether a line has colours or other control characters. */
  isSpecial = false;
  /** When somebody last wanted it; those not wanted for long are dropped first. */
  used = 0;
  readonly times = new Float64Array(CHUNK);
  readonly streams = new Uint16Array(CHUNK);
  readonly tasks = new Int32Array(CHUNK);
  readonly attempts = new Uint16Array(CHUNK);
  readonly widths = new Uint16Array(CHUNK);
  private readonly there = new Uint8Array(CHUNK);
  private readonly ends = new Uint32Array(CHUNK);
  private parts: string[] | undefined = [];
  private joined = "";
  private joinedCount = 0;

  has(at: number): boolean {
    return this.there[at] === 1;
  }

  add(at: number, event: LogEvent, stream: number): void {
    if (this.has(at) || !this.parts) return;
    this.parts[at] = event.payload;
    this.there[at] = 1;
    this.count++;
    this.size += event.payload.length + 1;
    this.times[at] = Date.parse(event.time);
    this.streams[at] = stream;
    this.tasks[at] = event.task ?? -1;
    this.attempts[at] = event.attempt;
    this.widths[at] = Math.min(plain(event.payload).length, 0xffff);
    this.isSpecial ||= isSpecial(event.payload);
    if (this.count === CHUNK) this.join();
  }

  line(at: number): string {
    return this.parts ? (this.parts[at] ?? "") : this.joined.slice(at ? this.ends[at - 1] : 0, (this.ends[at] as number) - 1);
  }

  /** All lines, each with a line break, and where each ends. Only of a chunk without gaps. */
  text(): { text: string; ends: Uint32Array } {
    if (this.parts && this.joinedCount !== this.count) this.join();
    return { text: this.joined, ends: this.ends };
  }

  private join(): void {
    const parts = this.parts as string[];
    let end = 0;
    for (let at = 0; at < this.count; at++) this.ends[at] = end += (parts[at] as string).length + 1;
    this.joined = `${parts.slice(0, this.count).join("\n")}\n`;
    this.joinedCount = this.count;
    if (this.count === CHUNK) this.parts = undefined;
  }
}

export class Lines {
  /** How many lines the log has, as far as is known. */
  total = 0;
  /** The characters of all loaded chunks. */
  size = 0;
  private readonly chunks = new Map<number, Chunk>();
  private readonly streams: string[] = [];
  private clock = 0;

  /** How many lines are loaded. */
  get loaded(): number {
    let count = 0;
    for (const chunk of this.chunks.values()) count += chunk.count;
    return count;
  }

  get chunkCount(): number {
    return Math.ceil(this.total / CHUNK);
  }

  grow(total: number): void {
    this.total = Math.max(this.total, total);
  }

  /** Store lines. Those that are there already are left as they are. */
  put(events: readonly LogEvent[]): void {
    for (const event of events) {
      const line = event.seq - 1;
      const index = Math.floor(line / CHUNK);
      this.grow(event.seq);
      this.add(event, line % CHUNK, this.chunks.get(index) ?? this.begin(index));
    }
  }

  private begin(index: number): Chunk {
    const chunk = new Chunk();
    chunk.used = ++this.clock;
    this.chunks.set(index, chunk);
    return chunk;
  }

  private add(event: LogEvent, at: number, chunk: Chunk): void {
    const before = chunk.size;
    chunk.add(at, event, this.numberOf(event.stream));
    this.size += chunk.size - before;
  }

  private numberOf(stream: string): number {
    const at = this.streams.indexOf(stream);
    return at >= 0 ? at : this.streams.push(stream) - 1;
  }

  chunk(index: number): Chunk | undefined {
    return this.chunks.get(index);
  }

  /** How many lines a chunk has when it is loaded. */
  length(index: number): number {
    return Math.min(CHUNK, this.total - index * CHUNK);
  }

  isFilled(index: number): boolean {
    return (this.chunks.get(index)?.count ?? 0) >= this.length(index);
  }

  /** The first gap from a line on, before another: its first line, and the one after its last. */
  gap(from: number, to: number): Range | undefined {
    const isThere = (line: number) => this.chunks.get(Math.floor(line / CHUNK))?.has(line % CHUNK) ?? false;
    let first = from;
    while (first < to && isThere(first)) first++;
    let end = first;
    while (end < to && !isThere(end)) end++;
    return first < end ? [first, end] : undefined;
  }

  get(line: number): LogLine | undefined {
    const chunk = this.chunks.get(Math.floor(line / CHUNK));
    const at = line % CHUNK;
    if (!chunk?.has(at)) return undefined;
    return {
      seq: line + 1,
      time: chunk.times[at] as number,
      stream: this.streams[chunk.streams[at] as number] as string,
      task: chunk.tasks[at] as number,
      attempt: chunk.attempts[at] as number,
      text: chunk.line(at),
    };
  }

  /** How many characters of a line are shown; 0 if it is not loaded. */
  width(line: number): number {
    const chunk = this.chunks.get(Math.floor(line / CHUNK));
    return chunk ? (chunk.widths[line % CHUNK] as number) : 0;
  }

  /** Note that these lines are looked at. */
  touch(from: number, to: number): void {
    this.clock++;
    for (let index = Math.floor(from / CHUNK); index <= Math.floor(to / CHUNK); index++) {
      const chunk = this.chunks.get(index);
      if (chunk) chunk.used = this.clock;
    }
  }

  /** Drop what was not looked at for longest, of the first `before` lines, until at most so many characters are left. */
  shrink(most: number, before: number): void {
    if (this.size <= most) return;
    const oldest = [...this.chunks].sort((one, other) => one[1].used - other[1].used);
    for (const [index, chunk] of oldest) {
      if (this.size <= most || chunk.used === this.clock) return;
      if ((index + 1) * CHUNK > before) continue;
      this.chunks.delete(index);
      this.size -= chunk.size;
    }
  }
}
