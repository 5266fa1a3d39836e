/** What a user may do: granted and revoked, with what becomes of jobs that use it. */

import { api, ask, type Schemas } from "../api/client";
import { countJobs, type Told, type UserProps } from "../users";
import { Action, Copy, Field } from "./action";
import "../style/users.css";

export function Privileges({ user, tell, then }: UserProps) {
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

function Revoke({ user, privilege, tell, then }: UserProps & { privilege: string }) {
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

function revoked({ name, stopped, holding }: Schemas["RevokedView"], privilege: string, now: boolean): Told {
  const held = now ? "held something under it, and are being cancelled" : "hold something under it, and keep it";
  const parts = [
    `${name} no longer has ${privilege}.`,
    stopped.length ? `${countJobs(stopped)} waited under it, and end.` : "",
    holding.length ? `${countJobs(holding)} ${held}.` : "",
  ];
  return { text: parts.filter(Boolean).join(" "), jobs: [...stopped, ...holding] };
}
