/** What stands in place of a page that is not for everybody, and the notice that a session has ended. */

import type { ComponentChildren } from "preact";
import { Link, useLocation, useSearch } from "wouter-preact";

import { signInPath } from "../own-path";
import { useSession } from "../session";
import { Page } from "./page";
import "../style/blocks.css";

interface Props {
  title: string;
  children: ComponentChildren;
}

/** A page for who is signed in. */
export function ForUsers({ title, children }: Props) {
  const { who } = useSession();
  if (who) return <>{children}</>;
  return (
    <Page title={title}>
      <section class="card narrow-card">
        <p>This page is for users of this service.</p>
        <SignInLink />
      </section>
    </Page>
  );
}

/** A page for operators. */
export function ForOperators({ title, children }: Props) {
  const { who, isOperator } = useSession();
  if (isOperator || !who) return <ForUsers title={title}>{children}</ForUsers>;
  return (
    <Page title={title}>
      <section class="card narrow-card">
        <p>
          This page is for operators: users with the privilege <code>admin</code>. You are signed in as {who.name}.
        </p>
      </section>
    </Page>
  );
}

/** The way in, and back to where one is. */
export function SignInLink() {
  useLocation();
  useSearch(); // both make the link follow the address
  return (
    <Link href={signInPath()} class="button main">
      Sign in
    </Link>
  );
}

/** That a session has ended while somebody looks. What the page shows stays until then, and is no longer renewed. */
export function SessionEnded() {
  const { hasEnded } = useSession();
  const [path] = useLocation();
  if (!hasEnded || path === "/sign-in") return null;
  return (
    <div class="ended" role="alert">
      <p>
        <strong>Your session has ended.</strong> This page shows what was so until then.
      </p>
      <SignInLink />
    </div>
  );
}
