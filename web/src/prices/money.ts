/** Amounts of money: decimal numbers as text with six decimals, as the service gives them. Whole millionths are exact. Pure. */

const MILLION = 1_000_000n;

/** An amount in millionths. */
export function micros(amount: string): bigint {
  const isNegative = amount.startsWith("-");
  const [whole = "0", part = ""] = amount.replace("-", "").split(".");
  const found = BigInt(whole) * MILLION + BigInt(part.padEnd(6, "0").slice(0, 6));
  return isNegative ? -found : found;
}

/** Millionths as the service writes them. */
export function amount(millionths: bigint): string {
  const size = millionths < 0n ? -millionths : millionths;
  return `${millionths < 0n ? "-" : ""}${size / MILLION}.${(size % MILLION).toString().padStart(6, "0")}`;
}

/** The sum of some amounts. */
export const sum = (amounts: readonly string[]): string => amount(amounts.reduce((all, each) => all + micros(each), 0n));

/** A part of a whole, from 0 to 1; 0 of nothing. */
export function part(of: string, whole: string): number {
  const all = micros(whole);
  return all === 0n ? 0 : Number((micros(of) * MILLION) / all) / 1e6;
}
