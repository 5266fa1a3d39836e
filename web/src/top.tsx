/** The bar at the top: where one can go, who one is, dark or light. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Link, useLocation, useSearch } from "wouter-preact";

import { api, ask, Refused } from "./api/client";
import { showKeys } from "./keys";
import { signInPath } from "./own-path";
import { say } from "./parts/notices";
import { useSession } from "./session";
import { applyTheme, theme, type Theme } from "./theme";

interface Place {
  title: string;
  to: string;
  isForOperators?: boolean;
}

const PLACES: Place[] = [
  { title: "Jobs", to: "/" },
  { title: "Pools", to: "/pools" },
  { title: "Graph", to: "/graph", isForOperators: true },
  { title: "Workers", to: "/workers", isForOperators: true },
  { title: "Resources", to: "/resources", isForOperators: true },
  { title: "Files", to: "/artifacts" },
  { title: "Prices", to: "/prices" },
  { title: "Shares", to: "/shares" },
  { title: "Site", to: "/site" },
  { title: "Operator", to: "/operator", isForOperators: true },
  { title: "Users", to: "/users", isForOperators: true },
];

export function Top() {
  const { who, isOperator } = useSession();
  const [path] = useLocation();
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => menu.current?.removeAttribute("open"), [path]);
  const places = PLACES.filter((each) => who && (isOperator || !each.isForOperators));
  const links = places.map((each) => (
    <Link key={each.to} href={each.to} aria-current={isAt(path, each.to) ? "page" : undefined}>
      {each.title}
    </Link>
  ));
  return (
    <header class="top">
      <Link href="/" class="brand">
        Penstock
      </Link>
      <nav class="wide" aria-label="Pages">
        {links}
      </nav>
      <span class="wide-only">
        <KeysButton />
        <ThemeChoice />
        <Me />
      </span>
      <details class="narrow" ref={menu}>
        <summary>Menu</summary>
        <div class="menu">
          <nav aria-label="Pages">{links}</nav>
          <ThemeChoice />
          <Me />
        </div>
      </details>
    </header>
  );
}

/** Pages that belong to a place and have other addresses. */
const BELOW: Record<string, string[]> = { "/": ["/jobs", "/sets", "/commits"], "/artifacts": ["/caches", "/published"] };

const isAt = (path: string, to: string): boolean =>
  path === to || [...(to === "/" ? [] : [to]), ...(BELOW[to] ?? [])].some((each) => path.startsWith(each));

function KeysButton() {
  return (
    <button type="button" class="quiet" aria-label="Keys and documentation" title="Keys and documentation" onClick={showKeys}>
      ?
    </button>
  );
}

function ThemeChoice() {
  const [chosen, setChosen] = useState<Theme>(theme());
  const change = (next: Theme) => {
    applyTheme(next);
    setChosen(next);
  };
  return (
    <label class="theme">
      <span class="unseen">Colours</span>
      <select value={chosen} onChange={(event) => change(event.currentTarget.value as Theme)}>
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

/** Who is signed in, and the way out; or the way in. */
function Me() {
  const { who, renew } = useSession();
  const leave = async () => {
    try {
      await ask(api.DELETE("/v1/session"));
      await renew();
      say("Signed out");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      say(error.detail, "bad");
    }
  };
  useLocation();
  useSearch(); // both make the link follow the address
  if (!who) return <Link href={signInPath()}>Sign in</Link>;
  return (
    <span class="me">
      <Link href="/tokens">{who.name}</Link>
      <button type="button" class="quiet" onClick={() => void leave()}>
        Sign out
      </button>
    </span>
  );
}
