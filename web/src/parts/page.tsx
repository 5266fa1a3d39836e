/** What every page has: a title, what one can do, and what is shown while it loads or when it cannot. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";

import type { Refused } from "../api/client";
import { signInPath } from "../own-path";
import type { Watched } from "../api/watch";

interface Props {
  title: string;
  /** What the heading shows instead of the title. */
  heading?: ComponentChildren;
  /** Where the page stands: links to what it is part of. */
  path?: { title: string; to: string }[];
  actions?: ComponentChildren;
  children: ComponentChildren;
}

/**
 * A page. Its heading gets the focus, so that a screen reader says where one is; not where somebody has begun to use the
 * page when its title becomes known.
 */
export function Page({ title, heading, path = [], actions, children }: Props) {
  const top = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Penstock`;
    const isInUse = top.current?.closest("main")?.contains(document.activeElement) ?? false;
    if (!isInUse) top.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <main id="main">
      {path.length > 0 && (
        <nav class="path" aria-label="Breadcrumb">
          {path.map((each) => (
            <Link key={each.to} href={each.to}>
              {each.title}
            </Link>
          ))}
        </nav>
      )}
      <header class="page-top">
        <h1 ref={top} tabIndex={-1}>
          {heading ?? title}
        </h1>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </main>
  );
}

/**
 * What was watched, once it is there. A refusal is shown beside what was there before; that a session has ended while
 * somebody looked is said once, above the page.
 */
export function Shown<T>({ of, children }: { of: Watched<T>; children: (value: T) => ComponentChildren }) {
  return (
    <>
      {of.error && !(of.error.isSignedOut && of.value !== undefined) && <Problem error={of.error} retry={of.refresh} />}
      {of.value === undefined ? !of.error && <Loading /> : children(of.value)}
    </>
  );
}

export function Loading() {
  return (
    <p class="loading" role="status">
      Loading…
    </p>
  );
}

/** What was refused, and a way to try again. */
export function Problem({ error, retry }: { error: Refused; retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <p>{error.detail}</p>
      <p class="faint">{error.status ? `${error.status} ${error.code}` : "no answer"}</p>
      {error.isSignedOut && <Link href={signInPath()}>Sign in</Link>}
      {retry && error.status !== 404 && !error.isSignedOut && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
