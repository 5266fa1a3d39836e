/** A search under way: it loads and looks at one chunk after the other, and lets the browser draw in between. */

import { Refused } from "../api/client";
import { Found, type Query } from "./find";
import type { LogSource } from "./source";

const MOST_MILLISECONDS = 8;
/** How often it says how far it is. */
const SAID_MILLISECONDS = 150;

export class Search {
  readonly found: Found;
  /** How many lines were looked at. */
  looked = 0;
  error: Refused | undefined;
  private isOver = false;
  private isBusy = false;

  constructor(
    private readonly source: LogSource,
    query: Query,
    private readonly changed: () => void,
  ) {
    this.found = new Found(query);
    void this.go();
  }

  end(): void {
    this.isOver = true;
  }

  get isDone(): boolean {
    return this.looked >= this.source.lines.total;
  }

  /** Look at what was not looked at yet. Called again when lines came. */
  async go(): Promise<void> {
    if (this.isBusy || this.isOver) return;
    this.isBusy = true;
    try {
      await this.lookAtAll();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.error = error;
    } finally {
      this.isBusy = false;
    }
    if (!this.isOver) this.changed();
  }

  private async lookAtAll(): Promise<void> {
    let began = performance.now();
    let said = began;
    for (let index = 0; index < this.source.lines.chunkCount && !this.isOver; index++) {
      if (this.found.seen(index) >= this.source.lines.length(index)) continue;
      await this.lookAt(index);
      if (performance.now() - began < MOST_MILLISECONDS) continue;
      await new Promise((next) => setTimeout(next));
      began = performance.now();
      if (began - said < SAID_MILLISECONDS) continue;
      said = began;
      this.changed();
    }
  }

  private async lookAt(index: number): Promise<void> {
    await this.source.chunk(index);
    const chunk = this.source.lines.chunk(index);
    if (!chunk || this.isOver) return;
    this.looked += chunk.count - this.found.seen(index);
    this.found.look(index, chunk);
  }
}
