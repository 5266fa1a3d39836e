/** What a new token is good for, and for how long: the same choice wherever one is made. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { given, scopesOf, WIDE } from "../scopes";
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

const LIVES: [string, string][] = [
  ["", "as usual: 90 days, or less if this session's token ends before"],
  ["43200", "12 hours"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
  ["7776000", "90 days"],
  ["31536000", "a year"],
  ["never", "until it is revoked"],
];

/** For how long a new token lasts. */
export function LifeField() {
  return (
    <label class="field">
      <span>Lasts</span>
      <select name="life">
        {LIVES.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
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
