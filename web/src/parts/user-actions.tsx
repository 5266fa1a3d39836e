/** What operators do with a user: rename, disable, enable, remove; and transfer a repository's name. */

import { useLocation } from "wouter-preact";

import { api, ask } from "../api/client";
import { countJobs, isRepository, type UserProps, userPath } from "../users";
import { Action, Field } from "./action";

export function Lifecycle({ user, tell, then }: UserProps) {
  const path = { params: { path: { name: user.name } } };
  if (user.state !== "disabled") {
    return (
      <>
        {isRepository(user.name) ? (
          <Accept user={user} tell={tell} then={then} />
        ) : (
          <>
            <Rename user={user} tell={tell} then={then} />
            <LinkGitHub user={user} tell={tell} then={then} />
          </>
        )}
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

function Rename({ user, then }: UserProps) {
  const [, go] = useLocation();
  const rename = async (form: FormData) => {
    const body = { name: String(form.get("name")).trim() };
    const found = await ask(api.POST("/v1/users/{name}/rename", { params: { path: { name: user.name } }, body }));
    go(userPath(found.name));
  };
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

/** A GitHub account that may sign in to the console as this user. */
function LinkGitHub({ user, then }: UserProps) {
  const link = (form: FormData) => {
    const body = { id: Number(form.get("id")), login: String(form.get("login")).trim() };
    return ask(api.PUT("/v1/users/{name}/github", { params: { path: { name: user.name } }, body }));
  };
  return (
    <Action
      title="Link GitHub account"
      question={`Whoever signs in at GitHub with this account acts in the console as ${user.name}. The link is one of the tokens of ${user.name}: to revoke it ends the link, and its sessions.`}
      fields={
        <>
          <Field label="Login" name="login" required autocomplete="off" maxLength={106} />
          <Field
            label="GitHub's id of the account"
            name="id"
            type="number"
            min={1}
            required
            hint="It stays when the login changes: the field id of https://api.github.com/users/LOGIN."
          />
        </>
      }
      run={link}
      done={`The account signs in as ${user.name}`}
      then={then}
    />
  );
}

function Disable({ user, tell, then }: UserProps) {
  const disable = async (form: FormData) => {
    const leases = form.has("leases") ? ("end" as const) : ("keep" as const);
    const answer = await ask(
      api.POST("/v1/users/{name}/disable", { params: { path: { name: user.name } }, body: { leases } }),
    );
    const goesOn = answer.is_done ? "" : " The service looks for more of their jobs for the next minutes.";
    const running = answer.running.length ? ` ${countJobs(answer.running)} still run, or end at the moment.` : "";
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

function Remove({ user, tell, then }: UserProps) {
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

/** A repository's name changed hands at GitHub: the grants go to the repository that has the name now. */
function Accept({ user, then }: UserProps) {
  const accept = (form: FormData) => {
    const params = { path: { user: user.name } };
    return ask(api.POST("/v1/github/repositories/{user}/accept", { params, body: { id: Number(form.get("id")) } }));
  };
  return (
    <Action
      title="Transfer"
      question={`Another repository has the name ${user.name} at GitHub now. It gets the privileges, and the former one loses them. Commits that were refused run again from their checks.`}
      fields={
        <Field
          label="GitHub's id of the repository"
          name="id"
          type="number"
          min={1}
          required
          hint="The failed check shows it."
        />
      }
      run={accept}
      done={`${user.name} is the repository that has this name now`}
      then={then}
      isDangerous
    />
  );
}
