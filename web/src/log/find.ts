/** Searching a log: which lines have a text. It goes on chunk by chunk, so that the page never stops. */

import { plain } from "./ansi";
import { CHUNK, type Chunk } from "./lines";

export interface Query {
  text: string;
  isExact: boolean;
}

const pattern = ({ text, isExact }: Query): RegExp => new RegExp(text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), isExact ? "g" : "gi");

/** Where a line has the text: from, and up to but not including. */
export function places(line: string, query: Query): [number, number][] {
  if (!query.text) return [];
  return [...line.matchAll(pattern(query))].map((each) => [each.index, each.index + each[0].length]);
}

/** The lines of a text that match. `ends`: where each line ends, after its line break. */
function matching(text: string, ends: Uint32Array, count: number, query: RegExp): number[] {
  const found: number[] = [];
  query.lastIndex = 0;
  let line = 0;
  for (let hit = query.exec(text); hit; hit = query.exec(text)) {
    while (line < count && (ends[line] as number) <= hit.index) line++;
    if (line >= count) break;
    found.push(line);
    query.lastIndex = ends[line] as number; // one match a line is enough
  }
  return found;
}

/** The lines that match, as far as they were looked at. */
export class Found {
  count = 0;
  private readonly pattern: RegExp;
  private readonly hits = new Map<number, Uint32Array>();
  private readonly looked = new Map<number, number>();

  constructor(readonly query: Query) {
    this.pattern = pattern(query);
  }

  /** How many lines of a chunk were looked at. */
  seen(index: number): number {
    return this.looked.get(index) ?? 0;
  }

  look(index: number, chunk: Chunk): void {
    const found = chunk.isSpecial ? this.inSpecial(chunk) : this.inPlain(chunk);
    this.count += found.length - (this.hits.get(index)?.length ?? 0);
    this.hits.set(index, Uint32Array.from(found));
    this.looked.set(index, chunk.count);
  }

  private inPlain(chunk: Chunk): number[] {
    const { text, ends } = chunk.text();
    return matching(text, ends, chunk.count, this.pattern);
  }

  private inSpecial(chunk: Chunk): number[] {
    const ends = new Uint32Array(chunk.count);
    let text = "";
    for (let at = 0; at < chunk.count; at++) {
      text += `${plain(chunk.line(at))}\n`;
      ends[at] = text.length;
    }
    return matching(text, ends, chunk.count, this.pattern);
  }

  /** The next matching line after `line`, or before it; from the other end where there is none. */
  next(line: number, step: 1 | -1): number | undefined {
    const indexes = [...this.hits.keys()].filter((each) => this.hits.get(each)?.length).sort((one, other) => one - other);
    const lines = step > 0 ? indexes : indexes.reverse();
    const beyond = (each: number) => (step > 0 ? each > line : each < line);
    for (const index of lines) {
      const edge = step > 0 ? index * CHUNK + CHUNK - 1 : index * CHUNK;
      if (!beyond(edge)) continue;
      const found = this.ordered(index, step).find(beyond);
      if (found !== undefined) return found;
    }
    return lines[0] === undefined ? undefined : this.ordered(lines[0], step)[0];
  }

  private ordered(index: number, step: 1 | -1): number[] {
    const found = Array.from(this.hits.get(index) ?? [], (each) => index * CHUNK + each);
    return step > 0 ? found : found.reverse();
  }

  /** The place of a matching line among all, from 1; 0 if it does not match. */
  place(line: number): number {
    const chunk = Math.floor(line / CHUNK);
    const at = this.hits.get(chunk)?.indexOf(line % CHUNK) ?? -1;
    if (at < 0) return 0;
    let before = 0;
    for (const [index, hits] of this.hits) if (index < chunk) before += hits.length;
    return before + at + 1;
  }
}
