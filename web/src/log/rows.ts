/** Which line stands in which row, when some ranges of lines are folded away. */

/** Lines from the first up to, but not including, the second. */
export type Range = readonly [number, number];

export class Rows {
  readonly count: number;
  /** Where each visible range begins, as a line and as a row. */
  private readonly lines: Float64Array;
  private readonly rows: Float64Array;

  /** `hidden`: in order, without overlaps. */
  constructor(
    total: number,
    readonly hidden: readonly Range[] = [],
  ) {
    this.lines = new Float64Array(hidden.length + 1);
    this.rows = new Float64Array(hidden.length + 1);
    let gone = 0;
    hidden.forEach(([from, to], index) => {
      gone += to - from;
      this.lines[index + 1] = to;
      this.rows[index + 1] = to - gone;
    });
    this.count = total - gone;
  }

  lineOf(row: number): number {
    const at = last(this.rows, row);
    return (this.lines[at] as number) + row - (this.rows[at] as number);
  }

  /** The row of a line; of a line that is folded away, that of the line before the fold. */
  rowOf(line: number): number {
    const at = last(this.lines, line);
    const row = (this.rows[at] as number) + line - (this.lines[at] as number);
    const end = at + 1 < this.rows.length ? (this.rows[at + 1] as number) : this.count;
    return Math.max(0, Math.min(row, end - 1));
  }
}

/** The last place in an ascending list whose value is at most `value`. */
function last(values: Float64Array, value: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((values[middle] as number) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}
