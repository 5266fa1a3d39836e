/** Lines in an address: #L12, or #L12-L20. */

/** The first and the last line, counted from 1. */
export type Span = readonly [number, number];

const LINK = /^#?L?(\d{1,11})(?:-L?(\d{1,11}))?$/;

/** The lines that a fragment, or what somebody typed, names. */
export function parseLines(text: string): Span | undefined {
  const found = LINK.exec(text.trim());
  if (!found) return undefined;
  const from = Number(found[1]);
  const to = Number(found[2] ?? found[1]);
  return from && to ? [Math.min(from, to), Math.max(from, to)] : undefined;
}

export const linesHash = ([from, to]: Span): string => (from === to ? `#L${from}` : `#L${from}-L${to}`);
