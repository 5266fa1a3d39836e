/** A user: what they may do, whether they may act, and the tokens and sessions that they have. */

import { useState } from "preact/hooks";
import { Link, useLocation, useParams } from "wouter-preact";

import { api, ask, type Schemas } from "../api/client";
import { every } from "../api/every";
import { useWatch } from "../api/watch";
import { Action, Copy, Field } from "../parts/action";
import { ForOperators } from "../parts/gate";
import { JobName } from "../parts/names";
import { Page, Shown } from "../parts/page";
import { State } from "../parts/state";
import { NewToken, TokenList, useTokens } from "../parts/token-list";
import { When } from "../parts/time";
import { isRepository, userPath } from "../users";
import "../style/users.css";

type User = Schemas["UserView"];

/** What an action on a user led to, in words, and the jobs that it names. */
interface Told {
  text: string;
  jobs: string[];
}

export default function OneUser() {
  const { name = "" } = useParams<{ name: string }>();
  return (
    <ForOperators title={name}>
      <Found key={name} name={decodeURIComponent(name)} />
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
      <Shown of={users}>{() => (user ? <Shows user={user} tell={setTold} then={users.refresh} /> : <NoUser name={name} />)}</Shown>
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

interface Props {
  user: User;
  tell: (told: Told | undefined) => void;
  then: () => void;
}

function Shows({ user, tell, then }: Props) {
  const tokens = useTokens(user.name);
  return (
    <>
      <dl class="facts">
        <dt>State</dt>
        <dd>
          <State of={user.state} />
        </dd>
        <dt>Kind</dt>
        <dd>{isRepository(user.name) ? "a repository: its jobs have its privileges, whoever submits them" : "a person or a program"}</dd>
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

function Privileges({ user, tell, then }: Props) {
  const path = (privilege: string) => ({ params: { path: { name: user.name, privilege } } });
  const grant = (form: FormData) =>
    ask(api.PUT("/v1/users/{name}/privileges/{privilege}", path(String(form.get("privilege")).trim())));
  return (
    <section class="card" aria-labelledby="privileges">
      <div class="page-top">
        <h2 id="privileges">Privileges</h2>
        <div class="actions">
          <Copy text={`penstock user grant ${user.name} PRIVILEGE`} title="As command" />
          <Action
            title="Grant"
            run={grant}
            done="The privilege is granted"
            then={then}
            fields={
              <Field
                label="Privilege"
                name="privilege"
                required
                autocomplete="off"
                hint="For example resource.bench, as.oxide:hubris, priority. admin makes an operator, who may do everything."
              />
            }
          />
        </div>
      </div>
      {user.privileges.length === 0 && <p class="faint">None: they may use what requires no privilege.</p>}
      <ul class="privileges">
        {user.privileges.map((each) => (
          <li key={each}>
            <code>{each}</code>
            <Revoke user={user} privilege={each} tell={tell} then={then} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Revoke({ user, privilege, tell, then }: Props & { privilege: string }) {
  const revoke = async (form: FormData) => {
    const now = form.has("now");
    const params = { path: { name: user.name, privilege }, query: { now } };
    const answer = await ask(api.DELETE("/v1/users/{name}/privileges/{privilege}", { params }));
    tell(revoked(answer, privilege, now));
  };
  return (
    <Action
      title="Revoke"
      question={
        <>
          {user.name} loses <code>{privilege}</code> at once. Jobs that wait for what requires it fail; jobs that hold it
          keep it until they end.
        </>
      }
      fields={
        <label class="check">
          <input type="checkbox" name="now" />
          <span>Also cancel jobs that hold something under it</span>
        </label>
      }
      run={revoke}
      done="The privilege is revoked"
      then={then}
      isDangerous
    />
  );
}

const count = (jobs: string[]): string => `${jobs.length} job${jobs.length === 1 ? "" : "s"}`;

function revoked({ name, stopped, holding }: Schemas["RevokedView"], privilege: string, now: boolean): Told {
  const held = now ? "held something under it, and are being cancelled" : "hold something under it, and keep it";
  const parts = [
    `${name} no longer has ${privilege}.`,
    stopped.length ? `${count(stopped)} waited under it, and end.` : "",
    holding.length ? `${count(holding)} ${held}.` : "",
  ];
  return { text: parts.filter(Boolean).join(" "), jobs: [...stopped, ...holding] };
}

function Lifecycle({ user, tell, then }: Props) {
  const path = { params: { path: { name: user.name } } };
  if (user.state !== "disabled") {
    return (
      <>
        <Rename user={user} tell={tell} then={then} />
        <Disable user={user} tell={tell} then={then} />
      </>
    );
  }
  return (
    <>
      <Action
        title="Enable"
        run={() => ask(api.POST("/v1/users/{name}/enable", path))}
        done={`${user.name} may act again`}
        then={then}
      />
      <Remove user={user} tell={tell} then={then} />
    </>
  );
}

function Rename({ user, then }: Props) {
  const [, go] = useLocation();
  const rename = async (form: FormData) => {
    const body = { name: String(form.get("name")).trim() };
    const found = await ask(api.POST("/v1/users/{name}/rename", { params: { path: { name: user.name } }, body }));
    go(userPath(found.name));
  };
  if (isRepository(user.name)) return null;
  return (
    <Action
      title="Rename"
      question="Tokens, privileges, jobs and files stay theirs. Both names are understood, and the former one is given to nobody else."
      fields={<Field label="New name" name="name" required autocomplete="off" />}
      run={rename}
      done="The user has the new name"
      then={then}
    />
  );
}

function Disable({ user, tell, then }: Props) {
  const disable = async (form: FormData) => {
    const leases = form.has("leases") ? ("end" as const) : ("keep" as const);
    const answer = await ask(
      api.POST("/v1/users/{name}/disable", { params: { path: { name: user.name } }, body: { leases } }),
    );
    const goesOn = answer.is_done ? "" : " The service looks for more of their jobs for the next minutes.";
    const running = answer.running.length ? ` ${count(answer.running)} still run, or end at the moment.` : "";
    tell({ text: `${user.name} is disabled.${running}${goesOn}`, jobs: answer.running });
  };
  return (
    <Action
      title="Disable"
      question={`All tokens and sessions of ${user.name} are refused from the next request on, and jobs that wait are cancelled. You can enable the user again; cancelled jobs stay cancelled.`}
      fields={
        <label class="check">
          <input type="checkbox" name="leases" />
          <span>Also end jobs that run</span>
        </label>
      }
      run={disable}
      done={`${user.name} is disabled`}
      then={then}
      isDangerous
    />
  );
}

function Remove({ user, tell, then }: Props) {
  const remove = async () => {
    const answer = await ask(api.DELETE("/v1/users/{name}", { params: { path: { name: user.name } } }));
    tell({ text: [`${user.name} is removed.`, ...answer.left].join(" "), jobs: [] });
  };
  return (
    <Action
      title="Remove"
      question={`The tokens of ${user.name} are deleted, with all that was made from them. Jobs, logs and outputs stay as long as those of others. The name is given to nobody else. This cannot be undone.`}
      run={remove}
      done={`${user.name} is removed`}
      then={then}
      isDangerous
    />
  );
}
