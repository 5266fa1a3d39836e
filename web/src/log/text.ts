/** A log, or some of its lines, as text for a file or the clipboard. */

import type { Chunk } from "./lines";
import { CHUNK } from "./lines";
import type { LogSource } from "./source";

/** The text of the lines from the first up to, but not including, the second. Throws Refused. */
export async function texts(source: LogSource, from: number, to: number, hasTimes: boolean): Promise<string[]> {
  const found: string[] = [];
  for (let index = Math.floor(from / CHUNK); index * CHUNK < to; index++) {
    await source.chunk(index);
    const chunk = source.lines.chunk(index);
    if (chunk) found.push(cut(chunk, Math.max(0, from - index * CHUNK), Math.min(chunk.count, to - index * CHUNK), hasTimes));
  }
  return found;
}

function cut(chunk: Chunk, from: number, to: number, hasTimes: boolean): string {
  const { text, ends } = chunk.text();
  if (!hasTimes) return text.slice(from ? ends[from - 1] : 0, to ? ends[to - 1] : 0);
  let found = "";
  for (let at = from; at < to; at++) found += `${new Date(chunk.times[at] as number).toISOString()} ${chunk.line(at)}\n`;
  return found;
}
