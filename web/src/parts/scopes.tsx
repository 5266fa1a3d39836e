/** What a new token is good for, and for how long: the same choice wherever one is made. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { given, scopesOf, WIDE } from "../scopes";
import { useSession } from "../session";
import { Field } from "./action";

/** The fields of a new token. `own` are the scopes of the token that makes it, which it cannot exceed. */
export function ScopeFields({ own, children }: { own: readonly string[]; children?: ComponentChildren }) {
  const [isNarrow, setNarrow] = useState(false);
  const open = given(own);
  return (
    <>
      <fieldset>
        <legend>Good for</legend>
        <Radio
          label={`all that this session is good for: ${own.join(", ")}`}
          isOn={!isNarrow}
          choose={() => setNarrow(false)}
        />
        <Radio label="only this:" isOn={isNarrow} choose={() => setNarrow(true)} />
        {isNarrow && (
          <div class="narrower">
            {WIDE.filter(([scope]) => open.includes(scope)).map(([scope, meaning]) => (
              <label key={scope} class="check">
                <input type="checkbox" name="scope" value={scope} />
                <span>
                  <code>{scope}</code> <span class="faint">{meaning}</span>
                </span>
              </label>
            ))}
            <Field
              label="Narrower scopes"
              name="narrow"
              hint="For example submit:oxide:hubris or operate:target/lab. Several with spaces between."
            />
          </div>
        )}
      </fieldset>
      {children}
    </>
  );
}

function Radio({ label, isOn, choose }: { label: string; isOn: boolean; choose: () => void }) {
  return (
    <label class="check">
      <input type="radio" name="wide" checked={isOn} onChange={choose} />
      <span>{label}</span>
    </label>
  );
}

const DAY = 86_400;
const LIVES: [number, string][] = [
  [3600, "an hour"],
  [4 * 3600, "4 hours"],
  [8 * 3600, "8 hours"],
  [7 * DAY, "7 days"],
  [30 * DAY, "30 days"],
  [365 * DAY, "a year"],
];

/** For how long a new token lasts. None outlives the one that makes it, which here is mostly a session: what the service would refuse is not offered. */
export function LifeField() {
  const { who } = useSession();
  const end = who?.token.expires;
  const left = end ? (Date.parse(end) - Date.now()) / 1000 : Infinity;
  return (
    <label class="field">
      <span>Lasts</span>
      <select name="life">
        <option value="">{left < 90 * DAY ? "as long as this session" : "as usual: 90 days"}</option>
        {LIVES.filter(([seconds]) => seconds < left).map(([seconds, words]) => (
          <option key={seconds} value={String(seconds)}>
            {words}
          </option>
        ))}
        {!end && <option value="never">until it is revoked</option>}
      </select>
      {end && (
        <small>
          At most until this session ends, as it is made with that. <code>penstock token create</code> makes one that lasts.
        </small>
      )}
    </label>
  );
}

/** What a form with these fields asks for. */
export function wished(form: FormData): { scopes: string[]; expires_in: number | "never" | null } {
  const life = String(form.get("life") ?? "");
  return {
    scopes: scopesOf(form.getAll("scope").map(String), String(form.get("narrow") ?? "")),
    expires_in: life === "" ? null : life === "never" ? "never" : Number(life),
  };
}
