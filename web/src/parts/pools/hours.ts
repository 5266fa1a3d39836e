/** The hours of a pool as points of a chart. Pure. */

import type { Points } from "../chart";

/** What a pool had: of an amount, such as a quota, how much of it. */
export interface Counts {
  held: number;
  idle: number;
  waiting: number;
}

/** An hour of a pool, as `GET /v1/pools/{sort}/{name}/series` shows it. */
export interface Hour {
  start: string;
  seconds: number;
  limit: number;
  mean: Counts;
  most: Counts;
}

/** An hour or a day: how long it is at most, in seconds. */
const SECONDS = { hour: 3600, day: 86400 } as const;
export type Step = keyof typeof SECONDS;

/**
 * The means as lines: held, idle, waiting, and the limit. A value stands until the next hour (or day). Those that were not
 * counted are gaps, and so is what follows the last.
 */
export function pointsOf(hours: readonly Hour[], step: Step): Points {
  const times: number[] = [];
  const lines: (number | null)[][] = [[], [], [], []];
  const add = (at: number, of: Hour | undefined) => {
    times.push(at);
    const values = of ? [of.mean.held, of.mean.idle, of.mean.waiting, of.limit] : [null, null, null, null];
    values.forEach((value, index) => lines[index]?.push(value));
  };
  hours.forEach((hour, index) => {
    const next = hours[index + 1];
    add(begin(hour), hour);
    if (next && begin(next) > endOf(hour, step)) add(endOf(hour, step), undefined);
  });
  const last = hours.at(-1);
  if (last) add(begin(last) + Math.max(last.seconds, 1), last);
  return [times, ...lines];
}

/** The hour (or day) that a moment in seconds is in; undefined if that was not counted. */
export const hourAt = (hours: readonly Hour[], at: number, step: Step): Hour | undefined =>
  hours.find((hour) => begin(hour) <= at && at < endOf(hour, step));

/** When an hour began, in seconds. */
const begin = ({ start }: Hour): number => Date.parse(start) / 1000;

/** When an hour or a day ends, in seconds. A day of this place may have 23 or 25 hours. */
function endOf(hour: Hour, step: Step): number {
  if (step === "hour") return begin(hour) + SECONDS.hour;
  const day = new Date(hour.start);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1).getTime() / 1000;
}

/** Days of this place instead of hours: means over what was counted of them, and the most of their hours. */
export function daysOf(hours: readonly Hour[]): Hour[] {
  const days = new Map<string, Hour[]>();
  for (const hour of hours) {
    const day = new Date(new Date(hour.start).setHours(0, 0, 0, 0)).toISOString();
    const known = days.get(day);
    if (known) known.push(hour);
    else days.set(day, [hour]);
  }
  return [...days].map(([start, of]) => dayOf(start, of));
}

function dayOf(start: string, hours: readonly Hour[]): Hour {
  const seconds = hours.reduce((sum, hour) => sum + hour.seconds, 0);
  const mean = (name: keyof Counts) => hours.reduce((sum, hour) => sum + hour.mean[name] * hour.seconds, 0) / Math.max(seconds, 1);
  const most = (name: keyof Counts) => Math.max(...hours.map((hour) => hour.most[name]));
  return {
    start,
    seconds,
    limit: hours.at(-1)?.limit ?? 0,
    mean: { held: mean("held"), idle: mean("idle"), waiting: mean("waiting") },
    most: { held: most("held"), idle: most("idle"), waiting: most("waiting") },
  };
}

/** A mean, with as many digits as it needs and no more than two. */
export const rounded = (value: number): string => String(Math.round(value * 100) / 100);
