/** The console: its frame, and which page an address shows. */

import { lazy, Suspense } from "preact/compat";
import { Route, Switch } from "wouter-preact";

import { Keys } from "./keys";
import { SessionEnded } from "./parts/gate";
import { Loading, Page, Problem } from "./parts/page";
import { Notices } from "./parts/notices";
import { SessionProvider, useSession } from "./session";
import { Top } from "./top";

/** Each page is a file of its own, which is loaded when it is first looked at. */
const PAGES = [
  ["/", lazy(() => import("./pages/jobs"))],
  ["/artifacts", lazy(() => import("./pages/artifacts"))],
  ["/audit", lazy(() => import("./pages/audit"))],
  ["/caches", lazy(() => import("./pages/caches"))],
  ["/commits", lazy(() => import("./pages/commits"))],
  ["/graph", lazy(() => import("./pages/graph"))],
  ["/jobs/:job", lazy(() => import("./pages/job"))],
  ["/jobs/:job/log", lazy(() => import("./pages/job-log"))],
  ["/login", lazy(() => import("./pages/login"))],
  ["/operator", lazy(() => import("./pages/operator"))],
  ["/pools", lazy(() => import("./pages/pools"))],
  ["/pools/:sort/:name", lazy(() => import("./pages/pool"))],
  ["/prices", lazy(() => import("./pages/prices"))],
  ["/published", lazy(() => import("./pages/published"))],
  ["/resources", lazy(() => import("./pages/resources"))],
  ["/resources/:id", lazy(() => import("./pages/resource"))],
  ["/sets/:id", lazy(() => import("./pages/set"))],
  ["/shares", lazy(() => import("./pages/shares"))],
  ["/sign-in", lazy(() => import("./pages/sign-in"))],
  ["/site", lazy(() => import("./pages/site"))],
  ["/tokens", lazy(() => import("./pages/tokens"))],
  ["/users", lazy(() => import("./pages/users"))],
  ["/users/:name", lazy(() => import("./pages/user"))],
  ["/workers", lazy(() => import("./pages/workers"))],
  ["/workers/:id", lazy(() => import("./pages/worker"))],
] as const;

export function App() {
  return (
    <SessionProvider>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Top />
      <SessionEnded />
      <Pages />
      <Notices />
      <Keys />
    </SessionProvider>
  );
}

function Pages() {
  const { who, error, renew } = useSession();
  if (error) return <Page title="Penstock">{<Problem error={error} retry={() => void renew()} />}</Page>;
  if (who === undefined) return <Loading />;
  return (
    <Suspense fallback={<Loading />}>
      <Switch>
        {PAGES.map(([path, page]) => (
          <Route key={path} path={path} component={page} />
        ))}
        <Route>
          <Page title="There is no such page">
            <p>The address may be mistyped, or from another version of the console.</p>
          </Page>
        </Route>
      </Switch>
    </Suspense>
  );
}
