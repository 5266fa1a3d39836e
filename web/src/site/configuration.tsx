/** The site's configuration: read, changed, checked, and applied as it was shown. */

import type { Ref } from "preact";
import { useRef, useState } from "preact/hooks";

import { api, type Refused, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Action, Copy } from "../parts/action";
import { Editor, goTo } from "../parts/editor";
import { Problem, Shown } from "../parts/page";
import { RunbookLink } from "../parts/runbook";
import { When } from "../parts/time";
import { asksFirst, question } from "./plan";
import { Plan } from "./plan-view";
import { type Draft, useDraft } from "./use-draft";

type Site = Schemas["SiteView"];

/** `then` is called once something was applied. */
export function Configuration({ then }: { then: () => void }) {
  const site = useWatch("config", (signal) => api.GET("/v1/config", { signal }), { every: 60 });
  const renew = () => {
    site.refresh();
    then();
  };
  return <Shown of={site}>{(found) => <Edited site={found} renew={renew} />}</Shown>;
}

function Edited({ site, renew }: { site: Site; renew: () => void }) {
  const draft = useDraft(site, renew);
  const field = useRef<HTMLTextAreaElement>(null);
  const faults = draft.checked?.error?.faults ?? [];
  const marked = new Set(faults.flatMap((each) => (each.line == null ? [] : [each.line])));
  return (
    <section class="configuration" aria-labelledby="configuration">
      <div class="page-top">
        <h2 id="configuration">Configuration</h2>
        <div class="actions">
          <RunbookLink of="site#see-changes-before-they-happen" title="How changes are shown" />
          <Copy text="penstock config diff site.toml" title="As command" />
        </div>
      </div>
      <InForce site={site} />
      {draft.isOld && <Old site={site} draft={draft} />}
      <div class="sides">
        <div class="side">
          <Editor
            label="The site's configuration, as TOML"
            value={draft.text}
            onInput={draft.write}
            marked={marked}
            field={field}
          />
          <Buttons draft={draft} />
        </div>
        <div class="side" role="region" aria-live="polite" aria-label="What would change">
          <Result draft={draft} field={field} />
        </div>
      </div>
    </section>
  );
}

function InForce({ site }: { site: Site }) {
  if (!site.applied_at) return <p>No configuration was applied yet. A site needs at least a factory and a target.</p>;
  return (
    <p class="faint">
      {site.applied_by} applied the one in force <When at={site.applied_at} />.
    </p>
  );
}

function Old({ site, draft }: { site: Site; draft: Draft }) {
  return (
    <p class="warning" role="alert">
      {site.applied_by} applied another configuration <When at={site.applied_at} />, after you began with yours. Yours is
      compared with that one when you check it.{" "}
      <button type="button" class="quiet" onClick={draft.reset}>
        Drop mine, and take that one
      </button>
    </p>
  );
}

function Buttons({ draft }: { draft: Draft }) {
  const [isBusy, setBusy] = useState(false);
  const check = async () => {
    setBusy(true);
    await draft.check().finally(() => setBusy(false));
  };
  const plan = draft.checked?.plan;
  return (
    <div class="actions">
      <button
        type="button"
        class={plan ? "" : "main"}
        disabled={isBusy || draft.text.trim() === ""}
        onClick={() => void check()}
      >
        Check
      </button>
      <Action
        title="Apply"
        run={draft.apply}
        done="The configuration is applied"
        isDisabled={!plan || plan.differences.length === 0}
        {...(plan && asksFirst(plan) && { question: question(plan), isDangerous: true })}
      />
      <OpenFile write={draft.write} />
      {draft.isChanged && (
        <button type="button" onClick={draft.reset}>
          Take back my changes
        </button>
      )}
    </div>
  );
}

function OpenFile({ write }: { write: (text: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const read = async (file: File | undefined) => {
    if (file) write(await file.text());
    if (input.current) input.current.value = "";
  };
  return (
    <>
      <input ref={input} type="file" accept=".toml" hidden onChange={(event) => void read(event.currentTarget.files?.[0])} />
      <button type="button" onClick={() => input.current?.click()}>
        Open a file
      </button>
    </>
  );
}

function Result({
  draft,
  field,
}: {
  draft: Draft;
  field: Ref<HTMLTextAreaElement> & { current: HTMLTextAreaElement | null };
}) {
  const { checked, applied, isChanged } = draft;
  if (checked?.plan) return <Plan plan={checked.plan} />;
  if (checked?.error)
    return <Faults error={checked.error} show={(line, column) => field.current && goTo(field.current, line, column)} />;
  if (applied) return <Applied changes={applied.changes} />;
  return (
    <p class="empty">
      {isChanged
        ? "Check it to see what would change, and whom that concerns."
        : "Change the text, or open a file; then check it. Nothing changes before you apply it."}
    </p>
  );
}

function Applied({ changes }: { changes: string[] }) {
  return (
    <div class="card">
      <p class="good">
        <strong>✓ Applied.</strong> {changes.length === 0 && "It changed nothing."}
      </p>
      <ul class="lines">
        {changes.map((each) => (
          <li key={each} class="mono">
            {each}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What is wrong with the text, with a way to each place. */
function Faults({ error, show }: { error: Refused; show: (line: number, column: number) => void }) {
  if (error.faults.length === 0) return <Problem error={error} />;
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{error.detail}</strong>
      </p>
      <ul class="faults">
        {error.faults.map((each, index) => (
          <li key={index}>
            {each.line !== null && (
              <button type="button" class="quiet" onClick={() => show(each.line ?? 1, each.column ?? 1)}>
                Line {each.line}
              </button>
            )}{" "}
            {each.where && <code>{each.where}</code>} {each.message}
            {each.hint && <span class="faint"> ({each.hint})</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
