/** A user: what they may do, whether they may act, and the tokens and sessions that they have. */

import { useState } from "preact/hooks";
import { Link, useParams } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { every } from "../api/every";
import { useWatch } from "../api/watch";
import { ForOperators } from "../parts/gate";
import { JobName } from "../parts/names";
import { Page, Shown } from "../parts/page";
import { Privileges } from "../parts/privileges";
import { State } from "../parts/state";
import { NewToken, TokenList, useTokens } from "../parts/token-list";
import { When } from "../parts/time";
import { Lifecycle } from "../parts/user-actions";
import { isRepository, nameIn, type Told, type UserProps } from "../users";
import "../style/users.css";

type User = Schemas["UserView"];

export default function OneUser() {
  const { name = "" } = useParams<{ name: string }>();
  return (
    <ForOperators title={name}>
      <Found key={name} name={nameIn(name)} />
    </ForOperators>
  );
}

function Found({ name }: { name: string }) {
  const users = useWatch("users", (signal) =>
    every<User>((page) => api.GET("/v1/users", { params: { query: { ...(page && { page }) } }, signal })),
  );
  const [told, setTold] = useState<Told>();
  const user = users.value?.rows.find((each) => each.name === name || each.former.includes(name));
  return (
    <Page
      title={user?.name ?? name}
      path={[{ title: "Users", to: "/users" }]}
      actions={user && <Lifecycle user={user} tell={setTold} then={users.refresh} />}
    >
      {told && <Report told={told} />}
      <Shown of={users}>
        {() => (user ? <Shows user={user} tell={setTold} then={users.refresh} /> : <NoUser name={name} />)}
      </Shown>
    </Page>
  );
}

function NoUser({ name }: { name: string }) {
  return (
    <p class="empty">
      There is no user {name}. Users who were removed are not listed; <Link href="/audit">the audit log</Link> tells who
      removed them.
    </p>
  );
}

function Report({ told }: { told: Told }) {
  return (
    <section class="card" role="status">
      <p>{told.text}</p>
      {told.jobs.length > 0 && (
        <ul>
          {told.jobs.map((id) => (
            <li key={id} class="mono">
              <JobName id={id} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Shows({ user, tell, then }: UserProps) {
  const tokens = useTokens(user.name);
  return (
    <>
      <dl class="facts">
        <dt>State</dt>
        <dd>
          <State of={user.state} />
        </dd>
        <dt>Kind</dt>
        <dd>
          {isRepository(user.name)
            ? "a repository: its jobs have its privileges, whoever submits them"
            : "a person or a program"}
        </dd>
        <dt>Created</dt>
        <dd>
          <When at={user.created} />
        </dd>
        {user.former.length > 0 && <dt>Former names</dt>}
        {user.former.length > 0 && <dd>{user.former.join(", ")}</dd>}
        <dt>See</dt>
        <dd class="actions">
          <Link href={`/?owner=${encodeURIComponent(user.name)}&all=true`}>their jobs</Link>
          <Link href={`/audit?who=${encodeURIComponent(user.name)}`}>what they did</Link>
        </dd>
      </dl>
      <Privileges user={user} tell={tell} then={then} />
      <div class="page-top">
        <h2>What they sign in with</h2>
        <NewToken user={user.name} then={tokens.refresh} />
      </div>
      <TokenList of={tokens} />
    </>
  );
}
