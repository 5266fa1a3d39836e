/** What applying a configuration would do, in words. */

import type { Schemas } from "../api/client";

export type Changes = Schemas["SiteChanges"];
export type Difference = Schemas["DifferenceView"];

/** What a difference's sign means: a word, and a tone. */
export const SIGNS: Record<Difference["sign"], [string, string]> = {
  "+": ["added", "good"],
  "-": ["removed", "bad"],
  "~": ["changed", "wait"],
};

export const removed = (changes: Changes): Difference[] => changes.differences.filter((each) => each.sign === "-");

/** Whether somebody is asked before it is applied: something would go, or jobs would lose something. */
export const asksFirst = (changes: Changes): boolean => removed(changes).length > 0 || changes.losses.length > 0;

const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`;

/** What is asked before. */
export function question(changes: Changes): string {
  const gone = removed(changes).length;
  const parts = [
    `It changes ${count(changes.differences.length, "key", "keys")}`,
    gone > 0 && `and removes ${gone} of them`,
    changes.losses.length > 0 &&
      `; ${count(changes.losses.length, "pool or maker", "pools or makers")} would lose what jobs hold or wait for`,
  ];
  return `${parts.filter(Boolean).join(" ").replace(" ;", ";")}. Apply it?`;
}

/** The page of what a loss concerns, such as `target/linux`; undefined for a factory or a well. */
export const poolOf = (what: string): string | undefined => (/^(factory|well)\//.test(what) ? undefined : what);
