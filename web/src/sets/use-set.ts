/** The jobs of a set or a commit, watched. */

import { useMemo } from "preact/hooks";

import { api, type Schemas } from "../api/client";
import { useWatchedPages, type Rows } from "../parts/watch-pages";
import { setOf, type JobSet, type Member } from "./members";

/** A page has at most 100 jobs, so these are 3,000. */
const MOST_PAGES = 30;

export interface SetAddress {
  /** The set's id, or the SHA of a commit. */
  id: string;
  /** Whose jobs; empty for one's own. */
  owner: string;
}

export type WatchedSet = Rows<Member, Schemas["SetView"]> & { set: JobSet };

export function useSet({ id, owner }: SetAddress): WatchedSet {
  const found = useWatchedPages<Member, Schemas["SetView"]>(
    `set ${owner} ${id}`,
    (page, signal) => {
      const query = { ...(owner && { owner }), ...(page && { page }) };
      return api.GET("/v1/sets/{set}", { params: { path: { set: id }, query }, signal });
    },
    { isOver: (job) => job.state === "settled", pages: MOST_PAGES },
  );
  const set = useMemo(() => setOf(found.rows), [found.value]);
  return { ...found, set };
}
