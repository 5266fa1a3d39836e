/** What tokens are good for: docs/operators/permissions.md explains each scope. */

/** The scopes that are not narrowed, and what a token with each may do. */
export const WIDE: readonly (readonly [string, string])[] = [
  ["read", "see what the user may see"],
  ["submit", "submit jobs, and deal with them and their files"],
  ["review", "approve or refuse jobs that ask for an environment"],
  ["operate", "control pools, workers, resources and probes"],
  ["site", "check and apply the site's configuration"],
  ["users", "manage users, privileges and tokens"],
];

/** The scopes that a token with `own` may give as a whole. */
export function given(own: readonly string[]): string[] {
  return WIDE.map(([scope]) => scope).filter((scope) => own.includes("all") || own.includes(scope));
}

/** The scopes that were ticked, and those that were typed with spaces or commas between. */
export function scopesOf(ticked: readonly string[], typed: string): string[] {
  return [...new Set([...ticked, ...typed.split(/[\s,]+/)])].filter(Boolean);
}
