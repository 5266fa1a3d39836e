/** What can be folded: of each attempt what came before its script, and each task. */

import { CHUNK, type Lines } from "./lines";
import type { Range } from "./rows";

export interface Section {
  /** Such as `1.0` for task 0 of attempt 1, or `1.before`. */
  key: string;
  attempt: number;
  /** -1 for what came before the first task. */
  task: number;
  /** Its first line, which stays when it is folded. */
  head: number;
  /** How many lines it has. Other lines may stand between them. */
  count: number;
  /** When its first and its last line were written, in milliseconds. */
  first: number;
  last: number;
  runs: [number, number][];
}

export class Sections {
  readonly byHead = new Map<number, Section>();
  private readonly byKey = new Map<string, Section>();
  /** How many lines, from the start, were looked at. */
  done = 0;

  /** Look at the lines that are loaded and follow those looked at before. */
  feed(lines: Lines): void {
    for (;;) {
      const chunk = lines.chunk(Math.floor(this.done / CHUNK));
      const at = this.done % CHUNK;
      if (!chunk?.has(at)) return;
      this.see(this.done, chunk.attempts[at] as number, chunk.tasks[at] as number, chunk.times[at] as number);
      this.done++;
    }
  }

  private see(line: number, attempt: number, task: number, time: number): void {
    if (task < 0 && this.byKey.has(`${attempt}.0`)) return; // between tasks and after them: never folded
    const key = task < 0 ? `${attempt}.before` : `${attempt}.${task}`;
    const found = this.byKey.get(key) ?? this.begin(key, line, attempt, task, time);
    found.count++;
    found.last = Math.max(found.last, time);
    const run = found.runs.at(-1);
    if (run && run[1] === line) run[1] = line + 1;
    else found.runs.push([line, line + 1]);
  }

  private begin(key: string, head: number, attempt: number, task: number, time: number): Section {
    const made: Section = { key, attempt, task, head, count: 0, first: time, last: time, runs: [] };
    this.byKey.set(key, made);
    this.byHead.set(head, made);
    return made;
  }

  /** The section that a line is in. */
  of(line: number): Section | undefined {
    for (const section of this.byKey.values()) {
      if (section.runs.some(([from, to]) => from <= line && line < to)) return section;
    }
    return undefined;
  }

  get keys(): string[] {
    return [...this.byKey.values()].filter((each) => each.count > 1).map((each) => each.key);
  }

  /** The lines that folding these sections hides: all but their heads. */
  hidden(folded: ReadonlySet<string>): Range[] {
    const found: Range[] = [];
    for (const key of folded) {
      const section = this.byKey.get(key);
      for (const [from, to] of section?.runs ?? []) {
        const start = from === section?.head ? from + 1 : from;
        if (start < to) found.push([start, to]);
      }
    }
    return found.sort((one, other) => one[0] - other[0]);
  }
}
