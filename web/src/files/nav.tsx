/** The three kinds of files that the service keeps, as places to go to. */

import { Link, useLocation } from "wouter-preact";

const PLACES = [
  ["/artifacts", "Artifacts"],
  ["/caches", "Caches"],
  ["/published", "Published"],
] as const;

export function FilesNav() {
  const [path] = useLocation();
  return (
    <nav class="files-nav" aria-label="Files">
      {PLACES.map(([to, title]) => (
        <Link key={to} href={to} aria-current={path === to ? "page" : undefined}>
          {title}
        </Link>
      ))}
    </nav>
  );
}
