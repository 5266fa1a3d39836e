/** The jobs of a set or a commit, watched. */

import { useMemo } from "preact/hooks";

import { api, type Schemas } from "../api/client";
import { useWatchedPages, type Rows } from "../parts/watch-pages";
import { memberOf, setOf, type JobSet } from "./members";

/** A page has at most 100 jobs, so these are 3,000. */
const MOST_PAGES = 30;
const PAGE = "100";

export interface SetAddress {
  id: string;
  /** Whose jobs; empty for one's own. */
  owner: string;
  /** The tag that the jobs have: `set`, or `commit`. */
  tag: string;
}

export type WatchedSet = Rows<Schemas["JobView"]> & { set: JobSet };

export function useSet({ id, owner, tag }: SetAddress): WatchedSet {
  const found = useWatchedPages<Schemas["JobView"]>(
    `set ${owner} ${tag} ${id}`,
    (page, signal) => {
      const query = new URLSearchParams({ tag: `${tag}=${id}`, limit: PAGE, ...(owner && { owner }), ...(page && { page }) });
      return api.GET("/v1/jobs", { signal, querySerializer: () => query.toString() });
    },
    { isOver: (job) => job.state === "settled", pages: MOST_PAGES },
  );
  const set = useMemo(() => setOf(found.rows.map(memberOf)), [found.value]);
  return { ...found, set };
}
