/** Parts of what many want, in words and as lengths. */

interface Part {
  used: number;
  entitled: number;
}

/** A part in percent, with as many digits as it needs to differ from nothing. */
export function percent(part: number): string {
  const value = part * 100;
  if (value === 0) return "0 %";
  if (value < 0.1) return "< 0.1 %";
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

/** The part that the longest bar shows. */
export const scaleOf = (rows: readonly Part[]): number =>
  Math.max(0.01, ...rows.flatMap((each) => [each.used, each.entitled]));

/** How an owner stands: a sign, a word, and a tone. */
export function standing({ used, entitled }: Part): [string, string, string] {
  if (used > entitled) return ["▲", "above its part", "wait"];
  return used < entitled ? ["▽", "below its part", "good"] : ["=", "at its part", "off"];
}
