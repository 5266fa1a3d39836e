/** A machine asks for a token by a code: who it is, and whether it may act as whoever looks. [SEC-2] */

import { useState } from "preact/hooks";
import { Link, useSearchParams } from "wouter-preact";

import { api, ask, Refused, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { ForUsers } from "../parts/gate";
import { Loading, Page, Problem } from "../parts/page";
import { LifeField, ScopeFields, wished } from "../parts/scopes";
import { exact, When } from "../parts/time";
import { useSession } from "../session";
import "../style/sign-in.css";

type Login = Schemas["LoginView"];
type Approved = Schemas["LoginApproved"];

const TITLE = "Let a machine sign in";

export default function Approve() {
  const [search, setSearch] = useSearchParams();
  const code = (search.get("code") ?? "").trim().toUpperCase();
  return (
    <ForUsers title={TITLE}>
      <Page title={TITLE}>
        {code ? <Asked key={code} code={code} /> : <OtherCode show={(next) => setSearch({ code: next })} />}
      </Page>
    </ForUsers>
  );
}

/** A code is looked up once: wrong ones are counted. */
function Asked({ code }: { code: string }) {
  const login = useWatch(`login ${code}`, () => api.GET("/v1/logins/{code}", { params: { path: { code } } }), {
    isLast: () => true,
  });
  const [approved, setApproved] = useState<Approved>();
  const [, setSearch] = useSearchParams();
  if (approved) return <Done approved={approved} />;
  if (login.value) return <Question code={code} login={login.value} done={setApproved} />;
  if (!login.error) return <Loading />;
  if (login.error.status !== 404) return <Problem error={login.error} retry={login.refresh} />;
  return (
    <>
      <p class="warning" role="alert">
        No machine waits with the code <code>{code}</code>. It may be mistyped, or its ten minutes are over: then{" "}
        <code>penstock login</code> shows another.
      </p>
      <OtherCode show={(next) => setSearch({ code: next })} />
    </>
  );
}

function OtherCode({ show }: { show: (code: string) => void }) {
  return (
    <section class="card narrow-card">
      <p>
        <code>penstock login</code> shows a code on a machine that shall sign in as you. Type it here:
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          show(String(new FormData(event.currentTarget as HTMLFormElement).get("code") ?? "").trim());
        }}
      >
        <label class="field">
          <span>Code</span>
          <input name="code" required autocomplete="off" placeholder="BCDF-GHJK" class="mono" maxLength={40} />
        </label>
        <button type="submit" class="main">
          Look it up
        </button>
      </form>
    </section>
  );
}

interface QuestionProps {
  code: string;
  login: Login;
  done: (approved: Approved) => void;
}

function Question({ code, login, done }: QuestionProps) {
  if (login.state !== "waiting") return <Settled login={login} />;
  return (
    <section class="card narrow-card" aria-label="The machine that asks">
      <p class="code">{code}</p>
      <Facts login={login} />
      <p class="warning">
        <strong>Only approve a code that you see on a machine of your own.</strong> Whoever sends you a code wants a token of
        yours, and could do in your name whatever it is good for.
      </p>
      <Form code={code} done={done} />
      <p class="faint">
        If you did not begin this, leave it: the machine gets nothing, and its code is over <When at={login.ends} />.
      </p>
    </section>
  );
}

function Facts({ login }: { login: Login }) {
  const { who } = useSession();
  return (
    <dl class="facts">
      <dt>Machine</dt>
      <dd>
        {login.host || "(no name)"} <span class="faint">(as it calls itself)</span>
      </dd>
      <dt>Address</dt>
      <dd class="mono">{login.address}</dd>
      <dt>Asked</dt>
      <dd>
        <When at={login.created} />
      </dd>
      <dt>Will act as</dt>
      <dd>{who?.name}</dd>
    </dl>
  );
}

function Form({ code, done }: Omit<QuestionProps, "login">) {
  const { who } = useSession();
  const [isMine, setMine] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Refused>();
  const approve = async (form: FormData) => {
    setBusy(true);
    setError(undefined);
    try {
      done(await ask(api.POST("/v1/logins/{code}/approve", { params: { path: { code } }, body: wished(form) })));
    } catch (thrown) {
      if (!(thrown instanceof Refused)) throw thrown;
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void approve(new FormData(event.currentTarget as HTMLFormElement));
      }}
    >
      <ScopeFields own={who?.token.scopes ?? []} />
      <LifeField />
      <label class="check">
        <input type="checkbox" checked={isMine} onChange={(event) => setMine(event.currentTarget.checked)} required />
        <span>
          I see <code>{code}</code> on a machine of my own.
        </span>
      </label>
      {error && <Problem error={error} />}
      <div class="actions">
        <button type="submit" class="main" disabled={!isMine || isBusy}>
          Let it sign in as {who?.name}
        </button>
        <Link href="/" class="button">
          Leave it
        </Link>
      </div>
    </form>
  );
}

function Settled({ login }: { login: Login }) {
  return (
    <section class="card narrow-card">
      <p>
        {login.state === "taken"
          ? "This code was used: the machine has its token."
          : "Somebody approved this code already. The machine takes its token within seconds."}
      </p>
      <Facts login={login} />
      <p>
        Was that not you? <Link href="/tokens">Look at your tokens</Link>, and revoke what you do not know.
      </p>
    </section>
  );
}

function Done({ approved }: { approved: Approved }) {
  return (
    <section class="card narrow-card" role="status">
      <p class="good">
        <strong>✓ Approved.</strong> {approved.host || "The machine"} takes its token within seconds.
      </p>
      <dl class="facts">
        <dt>Good for</dt>
        <dd>{approved.scopes.join(", ")}</dd>
        <dt>Until</dt>
        <dd>{approved.expires ? exact(approved.expires) : "it is revoked"}</dd>
      </dl>
      <p>
        It is among <Link href="/tokens">your tokens</Link>, where you can revoke it. You may close this page.
      </p>
    </section>
  );
}
