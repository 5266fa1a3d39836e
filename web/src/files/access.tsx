/** Who may read the series of an owner, and changing that. */

import { api, ask, Refused, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Action, Copy, Field } from "../parts/action";
import { command } from "../parts/command";
import { Shown } from "../parts/page";
import { Table, type Column } from "../parts/table";

type Rule = Schemas["AccessView"];
type Access = Rule["access"];

/** Stands for all series without a rule of their own. */
const OTHERS = "*";

const WORDS: Record<Access, string> = {
  public: "anybody, without a token",
  private: "who may see the owner's jobs",
  privilege: "who may see the owner's jobs, and users with a privilege",
};

export function AccessRules({ owner }: { owner: string }) {
  const rules = useWatch(`series ${owner}`, (signal) => api.GET("/v1/series/{owner}", { params: { path: { owner } }, signal }));
  return (
    <section class="card" aria-labelledby="access">
      <h2 id="access">Who may read the series of {owner}</h2>
      <Shown of={rules}>
        {({ items }) => (
          <>
            <Table
              caption={`Rules of ${owner}`}
              columns={columns(owner, rules.refresh)}
              rows={items}
              id={({ series }) => series}
              empty="There is no rule: all that is published is public."
            />
            {items.length > 0 && !items.some(({ series }) => series === OTHERS) && (
              <p class="faint">All other series are public.</p>
            )}
          </>
        )}
      </Shown>
      <div class="actions">
        <SetRule owner={owner} then={rules.refresh} />
        <Copy text={command("penstock", "published", "access", "--owner", owner)} title="Copy as command" />
      </div>
    </section>
  );
}

function columns(owner: string, refresh: () => void): Column<Rule>[] {
  return [
    { title: "Series", cell: ({ series }) => (series === OTHERS ? "all others (*)" : series) },
    { title: "Readable by", cell: ({ access, privilege }) => WORDS[access] + (privilege ? `: ${privilege}` : "") },
    {
      title: "Actions",
      cell: ({ series }) => (
        <Action
          title="Remove"
          isDangerous
          question={`The rule of ${series} is removed. ${series === OTHERS ? "Series without a rule are public then." : "The series is readable as all others are."}`}
          run={() => set(owner, { series, access: null, privilege: "" })}
          done={`The rule of ${series} is removed`}
          then={refresh}
        />
      ),
    },
  ];
}

function SetRule({ owner, then }: { owner: string; then: () => void }) {
  return (
    <Action
      title="Set a rule"
      run={(form) => set(owner, bodyOf(form))}
      done="The rule is set"
      fields={
        <>
          <Field label="Series" name="series" required placeholder="nightly" hint="* stands for all series without a rule of their own." />
          <label class="field">
            <span>Readable by</span>
            <select name="access">
              {Object.entries(WORDS).map(([access, words]) => (
                <option key={access} value={access}>
                  {access}: {words}
                </option>
              ))}
            </select>
          </label>
          <Field label="Privilege" name="privilege" hint="Only for “privilege”: the one that lets a user read the series." />
        </>
      }
      then={then}
    />
  );
}

function bodyOf(form: FormData): Schemas["SetAccess"] {
  const [series, access, privilege] = ["series", "access", "privilege"].map((name) => String(form.get(name) ?? "").trim());
  if ((access === "privilege") !== Boolean(privilege))
    throw new Refused(400, "bad-request", access === "privilege" ? "Name the privilege." : `No privilege is needed for “${access}”: leave it empty.`);
  return { series: series as string, access: access as Access, privilege: privilege ?? "" };
}

const set = (owner: string, body: Schemas["SetAccess"]): Promise<unknown> =>
  ask(api.PUT("/v1/series/{owner}", { params: { path: { owner } }, body }));
