/** Tokens and sessions of a user: what each is good for, and a way to end it. Secrets are shown once, when made. */

import { useEffect, useRef, useState } from "preact/hooks";

import { api, ask, type Schemas } from "../api/client";
import { every, type Every } from "../api/every";
import { useWatch, type Watched } from "../api/watch";
import { useSession } from "../session";
import { Action, Copy, Field } from "./action";
import { Shown } from "./page";
import { LifeField, ScopeFields, wished } from "./scopes";
import { State } from "./state";
import { Table, type Column } from "./table";
import { When } from "./time";

export type Token = Schemas["TokenView"];

const isSession = (token: Token): boolean => (token.kind as string) === "session";

/** The tokens of a user, kept up to date. */
export function useTokens(user: string): Watched<Every<Token>> {
  return useWatch(`tokens ${user}`, (signal) =>
    every<Token>((page) =>
      api.GET("/v1/users/{name}/tokens", { params: { path: { name: user }, query: { ...(page && { page }) } }, signal }),
    ),
    { every: 60 },
  );
}

/** All tokens of a user: sessions, tokens, and those that are over. */
export function TokenList({ of }: { of: Watched<Every<Token>> }) {
  return <Shown of={of}>{({ rows }) => <Lists rows={rows} then={of.refresh} />}</Shown>;
}

function Lists({ rows, then }: { rows: Token[]; then: () => void }) {
  const good = rows.filter((each) => each.state === "good");
  const over = rows.filter((each) => each.state !== "good");
  const lists = { all: rows, then };
  return (
    <>
      <h2>Sessions</h2>
      <List caption="Sessions" rows={good.filter(isSession)} empty="Nobody is signed in to the console." {...lists} />
      <h2>Tokens</h2>
      <List caption="Tokens" rows={good.filter((each) => !isSession(each))} empty="No token is good." {...lists} />
      {over.length > 0 && (
        <details>
          <summary>{over.length} that are over: expired, or revoked within 30 days</summary>
          <List caption="Tokens that are over" rows={over} empty="" {...lists} />
        </details>
      )}
    </>
  );
}

interface ListProps {
  caption: string;
  rows: Token[];
  all: Token[];
  empty: string;
  then: () => void;
}

/** Some tokens, the newest first. */
function List({ caption, rows, all, empty, then }: ListProps) {
  const { who } = useSession();
  const current = who?.token.id;
  if (rows.length === 0) return <p class="faint">{empty}</p>;
  return (
    <Table
      caption={caption}
      columns={columns(all, current, then)}
      rows={rows.toReversed()}
      id={(each) => each.id}
      empty={empty}
      isMarked={(each) => each.id === current}
    />
  );
}

function columns(all: Token[], current: string | undefined, then: () => void): Column<Token>[] {
  return [
    { title: "State", cell: (token) => <State of={token.state} /> },
    { title: "Name", cell: (token) => <Name token={token} isCurrent={token.id === current} /> },
    { title: "Good for", cell: (token) => token.scopes.join(", ") },
    { title: "Made", cell: (token) => <Made token={token} /> },
    { title: "From", cell: (token) => <From id={token.parent} all={all} />, isMinor: true },
    { title: "Last used", cell: (token) => (token.used ? <When at={token.used} /> : "never") },
    { title: "Ends", cell: (token) => <Ends at={token.revoked ?? token.expires} /> },
    { title: "Actions", cell: (token) => <Revoke token={token} isCurrent={token.id === current} then={then} /> },
  ];
}

function Name({ token, isCurrent }: { token: Token; isCurrent: boolean }) {
  return (
    <span>
      {token.name || <span class="faint">(no name)</span>} {isCurrent && <strong>· this one</strong>}
      <br />
      <span class="faint">
        {token.kind} <span class="mono">{token.id}</span>
      </span>
    </span>
  );
}

/** The token that a token was made from, by its name if it is this user's and has one. */
function From({ id, all }: { id: string | null; all: Token[] }) {
  if (!id) return <span class="faint">none</span>;
  const name = all.find((each) => each.id === id)?.name;
  return name ? <span title={id}>{name}</span> : <span class="mono">{id}</span>;
}

function Made({ token }: { token: Token }) {
  return (
    <span>
      <When at={token.created} />
      {token.by !== token.user && <span class="faint"> by {token.by}</span>}
    </span>
  );
}

const Ends = ({ at }: { at: string | null }) => (at ? <When at={at} /> : <>never</>);

function Revoke({ token, isCurrent, then }: { token: Token; isCurrent: boolean; then: () => void }) {
  const { renew } = useSession();
  if (token.state !== "good") return null;
  const what = isSession(token) ? "session" : "token";
  return (
    <Action
      title={isSession(token) ? "End" : "Revoke"}
      question={
        <>
          The {what} {token.name || token.id} is refused from the next request on, and so is all that was made from it.
          {isCurrent && " You use it now: you are signed out."}
        </>
      }
      run={() => ask(api.DELETE("/v1/tokens/{token}", { params: { path: { token: token.id } } }))}
      done={`The ${what} is revoked`}
      then={() => (isCurrent ? void renew() : then())}
      isDangerous
    />
  );
}

/** The button that makes a token for a user, and the place where its secret is shown. */
export function NewToken({ user, then }: { user: string; then: () => void }) {
  const { who } = useSession();
  const [made, setMade] = useState<Schemas["TokenCreated"]>();
  const make = async (form: FormData) => {
    const body = { name: String(form.get("name") ?? "").trim(), ...wished(form) };
    setMade(await ask(api.POST("/v1/users/{name}/tokens", { params: { path: { name: user } }, body })));
  };
  return (
    <>
      <Action
        title="New token"
        run={make}
        done="The token is made: copy it now"
        then={then}
        fields={
          <>
            <Field label="Name" name="name" hint="What lists call it." maxLength={100} autocomplete="off" />
            <ScopeFields own={who?.token.scopes ?? []} />
            <LifeField />
          </>
        }
      />
      {made && <Secret made={made} hide={() => setMade(undefined)} />}
    </>
  );
}

function Secret({ made, hide }: { made: Schemas["TokenCreated"]; hide: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="secret" aria-label="The new token" onClose={hide}>
      <h2>The new token of {made.user}</h2>
      <p>It is shown this once. Whoever has it can do what it is good for: {made.scopes.join(", ")}.</p>
      <p class="command">
        <code data-secret>{made.token}</code> <Copy text={made.token} says="The token is copied" />
      </p>
      <p>
        {made.expires ? (
          <>
            It ends <When at={made.expires} />.
          </>
        ) : (
          "It is good until it is revoked."
        )}
      </p>
      <div class="actions">
        <button type="button" class="main" onClick={() => dialog.current?.close()}>
          I have it
        </button>
      </div>
    </dialog>
  );
}
