/** Pinning an artifact, so that it is kept after its job's files go; and removing pins. */

import { api, ask, Refused, type Schemas } from "../api/client";
import { Action, Field } from "../parts/action";
import { seconds } from "../parts/durations";
import { useSession } from "../session";
import { keeperOf } from "./keepers";

type Artifact = Schemas["ArtifactView"];

export function Pins({ of, then }: { of: Artifact; then: () => void }) {
  const { who, isOperator } = useSession();
  const pinned = of.owners.map((each) => keeperOf(each)).filter(({ kind }) => kind === "pin").map(({ id }) => id);
  const mine = pinned.filter((by) => by === who?.name);
  const others = isOperator ? pinned.filter((by) => by !== who?.name) : [];
  return (
    <>
      <Action
        title={mine.length > 0 ? "Pin anew" : "Pin"}
        run={(form) => pin(of.id, form)}
        done={`${of.path} is pinned`}
        question={`Keeps ${of.path} after the files of its job go.${mine.length > 0 ? " It replaces your present pin." : ""}`}
        fields={
          <>
            <Field label="Reason" name="reason" required maxLength={300} hint="Others read it." />
            <Field label="For how long" name="for" placeholder="90d" hint="Such as 12h or 90d. Empty: until you remove the pin." />
          </>
        }
        then={then}
      />
      {[...mine, ...others].map((by) => (
        <Action
          key={by}
          title={by === who?.name ? "Unpin" : `Remove the pin of ${by}`}
          isDangerous
          question="If nothing else keeps the file, it is deleted within minutes."
          run={() => unpin(of.id, by === who?.name ? undefined : by)}
          done={`${of.path} is no longer pinned by ${by}`}
          then={then}
        />
      ))}
    </>
  );
}

async function pin(artifact: string, form: FormData): Promise<unknown> {
  const lasts = String(form.get("for") ?? "").trim();
  const spent = lasts ? seconds(lasts) : null;
  if (spent === undefined || spent === 0) throw new Refused(400, "bad-request", `“${lasts}” is no duration. Write 12h or 90d.`);
  const body = { reason: String(form.get("reason")), for: spent };
  return ask(api.PUT("/v1/artifacts/{artifact}/pin", { params: { path: { artifact } }, body }));
}

const unpin = (artifact: string, by: string | undefined): Promise<unknown> =>
  ask(api.DELETE("/v1/artifacts/{artifact}/pin", { params: { path: { artifact }, query: { ...(by && { by }) } } }));
