/** The audit log: what its entries are about, as addresses of the console, and its filters. Pure. */

import type { paths } from "./api/schema";
import { command } from "./parts/command";
import { moment, seconds } from "./parts/durations";
import { userPath } from "./users";

type Way = (rest: string) => string;

const WAYS: Record<string, Way> = {
  user: userPath,
  job: (id) => `/jobs/${id}`,
  pool: (name) => `/pools/${name}`,
  worker: (id) => `/workers/${id}`,
  resource: (id) => `/resources/${id}`,
};

/** The page of what an entry is about, such as `user ada`; undefined if it has none. */
export function pageOf(what: string, did: string): string | undefined {
  if (did === "apply config") return "/site";
  const [kind = "", name = "", ...more] = what.split(" ");
  return name && more.length === 0 ? WAYS[kind]?.(name) : undefined;
}

type Query = NonNullable<paths["/v1/audit"]["get"]["parameters"]["query"]>;
type Deed = NonNullable<Query["did"]>;

/** All that the service records; a name that it does not have, or that is missing here, is an error of types. */
const KNOWN: Record<Deed, true> = {
  "accept repository": true,
  "account diff": true,
  "apply config": true,
  approve: true,
  "approve login": true,
  cancel: true,
  "create user": true,
  "delete cache": true,
  "disable user": true,
  discard: true,
  drain: true,
  "enable user": true,
  grant: true,
  hold: true,
  "identity token": true,
  "link account": true,
  "make token": true,
  "open series": true,
  pause: true,
  pin: true,
  publish: true,
  recycle: true,
  redeliver: true,
  refuse: true,
  release: true,
  remove: true,
  "remove user": true,
  "rename user": true,
  resize: true,
  resume: true,
  revoke: true,
  "revoke token": true,
  "sign in": true,
  unpin: true,
  unpublish: true,
};

export const DEEDS = Object.keys(KNOWN);

const isDeed = (word: string): word is Deed => Object.hasOwn(KNOWN, word);

/** The filters of the log, as they stand in the address. */
export interface AuditFilters {
  who?: string;
  did?: string;
  what?: string;
  since?: string;
  until?: string;
}

/** What the service is asked. `since` and `until` count from now. */
export function queryOf({ who, did, what, since, until }: AuditFilters, now: number, page = ""): Query {
  const [from, to] = [since, until].map((word) => word && moment(word, now));
  return {
    ...(who && { who }),
    ...(did && isDeed(did) && { did }),
    ...(what && { what }),
    ...(from && { since: from }),
    ...(to && { until: to }),
    ...(page && { page }),
  };
}

/** The command that shows the same. It reads `7d` as this page does, and no other words. */
export function commandOf(filters: AuditFilters, now: number): string {
  const words = (["since", "until", "who", "did", "what"] as const).flatMap((name) => {
    const value = filters[name];
    if (!value) return [];
    const isTime = name === "since" || name === "until";
    return [`--${name}`, isTime && seconds(value) === undefined ? (moment(value, now) ?? value) : value];
  });
  return command("penstock", "audit", "list", ...words);
}

/** What is wrong with the filters, in a sentence; undefined if nothing is. */
export function problemOf({ did, since, until }: AuditFilters, now: number): string | undefined {
  if (did && !isDeed(did)) return `“${did}” is no action. There are ${DEEDS.join(", ")}.`;
  const wrong = [since, until].find((word) => word && moment(word, now) === undefined);
  return wrong && `“${wrong}” is no time. Write 2d for two days ago, today, or a date such as 2026-01-31.`;
}
