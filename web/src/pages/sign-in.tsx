/** Signing in: with GitHub, with a code of `penstock console`, or with a token. */

import { useEffect, useState } from "preact/hooks";
import { useLocation, useSearchParams } from "wouter-preact";

import { api, ask, Refused } from "../api/client";
import { Page, Problem } from "../parts/page";
import { useSession } from "../session";

const CODE = /^#sign-in=([^.]+)\.(.+)$/;

export default function SignIn() {
  const { renew } = useSession();
  const [error, setError] = useState<Refused>();
  const [isBusy, setBusy] = useState(false);
  const [, go] = useLocation();
  const [search] = useSearchParams();

  const enter = async (body: { token: string } | { code: string; secret: string }) => {
    setBusy(true);
    setError(undefined);
    try {
      await ask(api.POST("/v1/session", { body }));
      await renew();
      go(search.get("to") ?? "/", { replace: true });
    } catch (thrown) {
      if (!(thrown instanceof Refused)) throw thrown;
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    const found = CODE.exec(location.hash);
    if (!found) return;
    history.replaceState(null, "", location.pathname + location.search); // the code must not stay in the address
    void enter({ code: found[1] as string, secret: found[2] as string });
  }, []);
  return (
    <Page title="Sign in">
      {error && <Problem error={error} />}
      <section class="card narrow-card">
        <h2>On this machine</h2>
        <p>
          If you are signed in on the command line, type <code>penstock console</code>. It opens this page, signed in.
        </p>
        <h2>With a token</h2>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void enter({ token: String(new FormData(event.currentTarget as HTMLFormElement).get("token") ?? "").trim() });
          }}
        >
          <label class="field">
            <span>Token</span>
            <input name="token" type="password" autocomplete="off" required placeholder="pst_…" />
            <small>It is sent once and not kept here. The session ends after 12 hours, or when you sign out.</small>
          </label>
          <button type="submit" class="main" disabled={isBusy}>
            Sign in
          </button>
        </form>
      </section>
    </Page>
  );
}
