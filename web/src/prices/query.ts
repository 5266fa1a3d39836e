/** What the page of prices asks for: as it stands in the address, as the service takes it, as a command. Pure. */

import { command } from "../parts/command";

export const BY = ["owner", "target", "pool", "day"] as const;
export type By = (typeof BY)[number];

export interface Asked {
  by: By;
  /** Days in UTC, such as 2026-01-31; "" for the first of the month and for today. */
  since: string;
  until: string;
  /** "" for all whom one may see. */
  owner: string;
}

const DAY = /^\d{4}-\d\d-\d\d$/;

/** What an address asks for. What is not understood is left out. */
export function askedOf(filters: Record<string, string>): Asked {
  const day = (name: string): string => (DAY.test(filters[name] ?? "") ? (filters[name] as string) : "");
  const by = BY.find((each) => each === filters["by"]) ?? "owner";
  return { by, since: day("since"), until: day("until"), owner: filters["owner"] ?? "" };
}

/** The command that shows the same. Days are in UTC there too. */
export function commandOf({ by, since, until, owner }: Asked): string {
  const at = (name: string, day: string): string[] => (day ? [name, `${day}T00:00:00Z`] : []);
  return command("penstock", "cost", "--by", by, ...at("--since", since), ...at("--until", until), ...(owner ? ["--owner", owner] : []));
}

/** Where the same prices stand, asked for otherwise. */
export function pricesPath(asked: Partial<Asked>): string {
  const search = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
  return search.size ? `/prices?${search}` : "/prices";
}

/** The day, in UTC, that is so many days before another; "" for what is no day. */
export function daysBefore(day: string, days: number): string {
  const at = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(at) ? "" : new Date(at - days * 86_400_000).toISOString().slice(0, 10);
}
