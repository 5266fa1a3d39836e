/** Times and durations, each with the exact time when pointed at. All tick by one clock. */

import { useEffect, useState } from "preact/hooks";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** The time now, renewed each second while the page is visible; or, for what changes more slowly, every so many seconds. */
export function useNow(step = 1): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!Number.isFinite(step)) return undefined; // nothing changes
    const tick = () => setNow((before) => (Date.now() - before < step * 1000 - 100 ? before : Date.now()));
    listeners.add(tick);
    timer ??= setInterval(() => document.hidden || listeners.forEach((each) => each()), 1000);
    return () => {
      listeners.delete(tick);
      if (listeners.size === 0) {
        clearInterval(timer);
        timer = undefined;
      }
    };
  }, [step]);
  return now;
}

const UNITS: [number, string][] = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
];

/** Seconds in words: 42 s, 3 min 5 s, 2 h 10 min, 3 d 4 h. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  for (const [index, [size, unit]] of UNITS.entries()) {
    if (whole < size) continue;
    const smaller = UNITS[index + 1] ?? ([1, "s"] as const);
    const rest = Math.floor((whole % size) / smaller[0]);
    return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${smaller[1]}` : ""}`;
  }
  return seconds > 0 && seconds < 10 && !Number.isInteger(seconds) ? `${seconds.toFixed(1)} s` : `${whole} s`;
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

export const exact = (at: string | number): string => EXACT.format(new Date(at));

/** A moment, as how long it is ago or to come: 3 min ago, in 20 s. Pointed at, it says the exact time. */
export function When({ at }: { at: string | null | undefined }) {
  const isFar = at && Math.abs(Date.parse(at) - Date.now()) > 2 * 3600_000;
  const now = useNow(isFar ? 30 : 1);
  if (!at) return <span class="faint">–</span>;
  const seconds = (Date.parse(at) - now) / 1000;
  const words = Math.abs(seconds) < 1 ? "now" : seconds < 0 ? `${duration(-seconds)} ago` : `in ${duration(seconds)}`;
  return (
    <time dateTime={at} title={exact(at)}>
      {words}
    </time>
  );
}

/** How long something lasted, or has lasted until now. */
export function Lasts({ from, to }: { from: string | null | undefined; to?: string | null | undefined }) {
  const now = useNow(from && !to ? 1 : Infinity);
  if (!from) return <span class="faint">–</span>;
  const seconds = ((to ? Date.parse(to) : now) - Date.parse(from)) / 1000;
  return <span title={`${exact(from)} – ${to ? exact(to) : "now"}`}>{duration(seconds)}</span>;
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Bytes in words: 17 B, 3.2 MiB. */
export function bytes(count: number): string {
  const power = count < 1 ? 0 : Math.min(SIZES.length - 1, Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** power;
  return `${power && value < 100 ? value.toFixed(1) : Math.round(value)} ${SIZES[power]}`;
}
