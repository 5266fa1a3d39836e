/** What entries of the audit log are about, as addresses of the console. */

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

/** Times back to which the log is shown, in seconds. */
export const SINCE: Record<string, number> = {
  "1h": 3600,
  "24h": 86_400,
  "7d": 604_800,
  "30d": 2_592_000,
  "90d": 7_776_000,
};

/** The beginning of a time that ends now, as the service takes it; undefined for no such time. */
export function sinceOf(word: string | undefined, now: number): string | undefined {
  const seconds = word === undefined ? undefined : SINCE[word];
  return seconds === undefined ? undefined : new Date(now - seconds * 1000).toISOString();
}
