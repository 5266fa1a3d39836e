/** Signing in: with GitHub, with a code of `penstock console`, or with a token. Then on to where one wanted to be. */

import { useEffect, useState } from "preact/hooks";
import { Link, useLocation, useSearchParams } from "wouter-preact";

import { api, ask, Refused, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { keepPath, keptPath, ownPath } from "../own-path";
import { Copy } from "../parts/action";
import { Page, Problem } from "../parts/page";
import { useSession } from "../session";
import "../style/sign-in.css";

/** Why somebody whom GitHub sent back is not signed in, by the code in the address. */
const REFUSED: Record<string, string> = {
  "github-unlinked":
    "Your GitHub account is no user's here. Ask an operator to link it: penstock user link NAME --github LOGIN.",
  "github-refused": "GitHub did not confirm who you are, or it took longer than 10 minutes. Try again.",
  "github-unreached": "GitHub does not answer at the moment. Try again, or sign in another way.",
  "cross-site": "This browser began no sign-in with GitHub, or began it more than 10 minutes ago. Try again.",
  "no-github": "Nobody signs in with GitHub here. Sign in another way.",
};

type With = Schemas["BeginSession"];

const CODE = /^#sign-in=([^.]+)\.(.+)$/;
const NOTHING: With = { token: "", code: "", secret: "" };

export default function SignIn() {
  const { who } = useSession();
  const [search] = useSearchParams();
  const refused = search.get("refused");
  const [kept] = useState(() => (refused === null ? undefined : keptPath())); // for another try
  const to = kept ?? ownPath(search.get("to"));
  const { enter, error, isBusy } = useEntering(to);
  const ways = useWatch("ways", () => api.GET("/v1/console"), { isLast: () => true });
  return (
    <Page title="Sign in">
      {error && <Problem error={error} />}
      {!error && refused !== null && (
        <p class="problem" role="alert">
          {Object.hasOwn(REFUSED, refused) ? REFUSED[refused] : "Signing in with GitHub did not work. Try again."}
        </p>
      )}
      {who && (
        <p>
          You are signed in as <strong>{who.name}</strong>. <Link href={to}>Go on</Link>, or sign in as somebody else:
        </p>
      )}
      <div class="ways">
        {ways.value?.github && <WithGitHub to={to} />}
        <WithCode />
        <WithToken enter={(token) => enter({ ...NOTHING, token })} isBusy={isBusy} />
      </div>
      {ways.value?.public && (
        <p class="faint">Jobs of public repositories can be read without signing in, by their address.</p>
      )}
    </Page>
  );
}

/** Signing in, and going on from there. A code in the address is used at once. */
function useEntering(to: string) {
  const { renew } = useSession();
  const [error, setError] = useState<Refused>();
  const [isBusy, setBusy] = useState(false);
  const [, go] = useLocation();
  const enter = async (body: With) => {
    setBusy(true);
    setError(undefined);
    try {
      await ask(api.POST("/v1/session", { body }));
      await renew();
      go(to, { replace: true });
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
    void enter({ ...NOTHING, code: found[1] as string, secret: found[2] as string });
  }, []);
  return { enter, error, isBusy };
}

function WithGitHub({ to }: { to: string }) {
  return (
    <section class="card">
      <h2>With GitHub</h2>
      <p>For accounts that an operator has linked to a user of this service.</p>
      <a class="button main" href="/v1/session/github" onClick={() => keepPath(to)}>
        Sign in with GitHub
      </a>
    </section>
  );
}

const COMMAND = "penstock console";

function WithCode() {
  return (
    <section class="card">
      <h2>From the command line</h2>
      <p>On a machine where you are signed in already, this opens the console in your browser, signed in:</p>
      <p class="command">
        <code>{COMMAND}</code> <Copy text={COMMAND} />
      </p>
      <p class="faint">
        Where no browser opens, <code>{COMMAND} --print</code> prints an address to open. It works once.
      </p>
    </section>
  );
}

function WithToken({ enter, isBusy }: { enter: (token: string) => Promise<void>; isBusy: boolean }) {
  return (
    <section class="card">
      <h2>With a token</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void enter(String(new FormData(event.currentTarget as HTMLFormElement).get("token") ?? "").trim());
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
  );
}
