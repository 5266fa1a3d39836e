/** The filters of the list of jobs: as they stand in the address, as the service takes them, as a command. Pure. */

import type { paths } from "../api/schema";
import { command } from "../parts/command";
import { moment } from "../parts/durations";

export interface JobFilters {
  state: string;
  name: string;
  since: string;
  owner: string;
  target: string;
  /** Each as name=value. */
  tags: string[];
  /** Whether the jobs of every owner are shown. */
  all: boolean;
}

/** States and outcomes, as `penstock job list --state` takes them. `waiting` are all that wait, whatever for. */
export const STATES = [
  "waiting",
  "queued",
  "acquiring",
  "running",
  "settled",
  "succeeded",
  "failed",
  "cancelled",
  "errored",
] as const;

type Query = NonNullable<paths["/v1/jobs"]["get"]["parameters"]["query"]>;

const TEXTS = ["state", "name", "since", "owner", "target"] as const;

/** The filters of an address. */
export function filtersOf(search: URLSearchParams): JobFilters {
  const [state, name, since, owner, target] = TEXTS.map((each) => search.get(each) ?? "") as [string, string, string, string, string];
  return { state, name, since, owner, target, tags: search.getAll("tag"), all: search.get("all") === "true" };
}

/** What the service is asked. `since` counts from now. */
export function queryOf({ state, name, since, owner, target, tags, all }: JobFilters, now: number, page = ""): Query {
  const from = since && moment(since, now);
  return {
    ...(isState(state) && { state }),
    ...(name && { name }),
    ...(from && { since: from }),
    ...(owner && { owner }),
    ...(target && { target }),
    ...(tags.length > 0 && { tag: tags }),
    ...(all && { all }),
    ...(page && { page }),
  };
}

const isState = (word: string): word is (typeof STATES)[number] => STATES.some((each) => each === word);

/** The command that shows the same. */
export function commandOf(filters: JobFilters, now: number): string {
  const words = pairs(filters, now).flatMap(([name, value]) => (name === "tag" ? ["-T", value] : [`--${name}`, value]));
  return command("penstock", "job", "list", ...words, ...(filters.all ? ["--all"] : []));
}

function pairs(filters: JobFilters, now: number): [string, string][] {
  const texts = TEXTS.map((name): [string, string] => [name, name === "since" ? (moment(filters.since, now) ?? "") : filters[name]]);
  return [...texts, ...filters.tags.map((tag): [string, string] => ["tag", tag])].filter(([, value]) => value);
}

/** What is wrong with the filters, in a sentence; undefined if nothing is. */
export function problemOf({ state, since, tags }: JobFilters, now: number): string | undefined {
  if (state && !isState(state)) return `“${state}” is no state. There are ${STATES.join(", ")}.`;
  if (since && moment(since, now) === undefined)
    return `“${since}” is no time. Write 2d for two days ago, today, or a date such as 2026-01-31.`;
  const wrong = tags.find((tag) => !/^[^=]+=/.test(tag));
  return wrong === undefined ? undefined : `“${wrong}” is no tag. Write name=value.`;
}
