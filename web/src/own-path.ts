/** Addresses to which one comes back after signing in: only those of the console itself. [SEC-2] */

/** The path to go to when somebody wants `wanted`; "/" for what is no page of this origin. */
export function ownPath(wanted: string | null | undefined, origin: string = location.origin): string {
  if (!wanted?.startsWith("/")) return "/";
  const found = URL.canParse(wanted, origin) ? new URL(wanted, origin) : undefined;
  // A path such as /.//example.com is our own, but would name another host once it is written as //example.com.
  if (found?.origin !== origin || found.pathname.startsWith("//")) return "/";
  if (/^\/(sign-in|v1)(\/|$)/.test(found.pathname)) return "/";
  return found.pathname + found.search + found.hash;
}

/** Where one signs in to come back to `path`, which is by default where one is. */
export function signInPath(path: string = location.pathname + location.search + location.hash): string {
  const to = ownPath(path);
  return to === "/" ? "/sign-in" : `/sign-in?to=${encodeURIComponent(to)}`;
}

const KEPT = "after-sign-in";
const MINUTES = 15;

/** Keep where to go, for a sign-in that leaves the page and comes back to "/". */
export function keepPath(path: string): void {
  sessionStorage.setItem(KEPT, JSON.stringify({ path, until: Date.now() + MINUTES * 60_000 }));
}

/** Where to go, if that was kept a short while ago. It is told once. */
export function keptPath(): string | undefined {
  const text = sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  if (!text) return undefined;
  const { path, until } = JSON.parse(text) as { path: string; until: number };
  return Date.now() < until ? ownPath(path) : undefined;
}
