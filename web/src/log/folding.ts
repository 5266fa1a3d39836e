/** Which sections of a log are folded, and which rows are left. */

import { Sections } from "./folds";
import { Rows } from "./rows";

export class Folding {
  readonly sections = new Sections();
  private folded: ReadonlySet<string> = new Set();
  private kept: { total: number; folded: ReadonlySet<string>; done: number; rows: Rows } | undefined;

  isFolded(key: string): boolean {
    return this.folded.has(key);
  }

  get isAny(): boolean {
    return this.folded.size > 0;
  }

  toggle(key: string): void {
    const next = new Set(this.folded);
    if (!next.delete(key)) next.add(key);
    this.folded = next;
  }

  foldAll(): void {
    this.folded = new Set(this.sections.keys);
  }

  unfoldAll(): void {
    this.folded = new Set();
  }

  /** Make a line visible. */
  show(line: number): void {
    const section = this.folded.size ? this.sections.of(line) : undefined;
    if (section && this.folded.has(section.key) && section.head !== line) this.toggle(section.key);
  }

  /** The rows of a log of so many lines. The same object while nothing changed. */
  rows(total: number): Rows {
    const { folded, kept } = this;
    const done = folded.size ? this.sections.done : 0;
    if (kept && kept.total === total && kept.folded === folded && kept.done === done) return kept.rows;
    const rows = new Rows(total, this.sections.hidden(folded));
    this.kept = { total, folded, done, rows };
    return rows;
  }
}
