/** Users in lists and addresses. */

import type { Schemas } from "./api/client";

type User = Schemas["UserView"];

/** What an action on a user led to, in words, and the jobs that it names. */
export interface Told {
  text: string;
  jobs: string[];
}

/** What every part of a user's page has. */
export interface UserProps {
  user: User;
  tell: (told: Told | undefined) => void;
  then: () => void;
}

export const countJobs = (jobs: readonly string[]): string => `${jobs.length} job${jobs.length === 1 ? "" : "s"}`;

/** The page of a user. The colon of a repository's name stays as it is. */
export const userPath = (name: string): string => `/users/${encodeURIComponent(name).replaceAll("%3A", ":")}`;

/** The name in a page's address, also if somebody wrote its colon otherwise. */
export const nameIn = (part: string): string => part.replace(/%3a/gi, ":");

/** Words that were typed with spaces or commas between. */
export const words = (typed: string): string[] => typed.split(/[\s,]+/).filter(Boolean);

/** Whether a user's name is a repository's. */
export const isRepository = (name: string): boolean => name.includes(":");

/** Whether a user fits the filters of the list: by a part of a name, a privilege, and what kind of user it is. */
export function fits(user: User, filters: Record<string, string>): boolean {
  const { name = "", privilege = "", kind = "" } = filters;
  const isOfKind = {
    people: !isRepository(user.name),
    repositories: isRepository(user.name),
    operators: user.privileges.includes("admin"),
  }[kind];
  return (
    [user.name, ...user.former].some((each) => each.includes(name)) &&
    (privilege === "" || user.privileges.some((each) => each.includes(privilege))) &&
    isOfKind !== false
  );
}
