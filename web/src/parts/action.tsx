/** Buttons that change something: they ask first where that cannot be undone, and say what came of it. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

import { Refused } from "../api/client";
import { say } from "./notices";

interface Props {
  title: string;
  /** What is done. Throws Refused. */
  run: (form: FormData) => Promise<unknown>;
  /** What is said once it is done. */
  done: string;
  /** What is asked before; without it nothing is asked. */
  question?: ComponentChildren;
  /** What the question's form asks besides. */
  fields?: ComponentChildren;
  isDangerous?: boolean;
  isDisabled?: boolean;
  /** What is refreshed afterwards. */
  then?: () => void;
}

export function Action({ title, run, done, question, fields, isDangerous, isDisabled, then }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();

  const go = async (form: FormData) => {
    setBusy(true);
    setError(undefined);
    try {
      await run(form);
      dialog.current?.close();
      dialog.current?.querySelector("form")?.reset(); // the next time it is asked anew
      say(done);
      then?.();
    } catch (thrown) {
      if (!(thrown instanceof Refused)) throw thrown;
      if (question || fields) setError(thrown.detail);
      else say(thrown.detail, "bad");
    } finally {
      setBusy(false);
    }
  };
  const asks = question !== undefined || fields !== undefined;
  const press = () => (asks ? dialog.current?.showModal() : void go(new FormData()));
  const style = isDangerous ? "dangerous" : "";
  return (
    <>
      <button type="button" class={style} disabled={isDisabled || isBusy} onClick={press}>
        {title}
      </button>
      {asks && (
        <dialog ref={dialog} aria-label={title} onClose={() => setError(undefined)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void go(new FormData(event.currentTarget as HTMLFormElement));
            }}
          >
            <h2>{title}</h2>
            {question && <p>{question}</p>}
            {fields}
            {error && (
              <p class="problem" role="alert">
                {error}
              </p>
            )}
            <div class="actions">
              <button type="button" onClick={() => dialog.current?.close()}>
                Back
              </button>
              <button type="submit" class={isDangerous ? "dangerous" : "main"} disabled={isBusy}>
                {title}
              </button>
            </div>
          </form>
        </dialog>
      )}
    </>
  );
}

/** A field of an action's form. */
export function Field({ label, name, hint, ...more }: { label: string; name: string; hint?: string } & Record<string, unknown>) {
  return (
    <label class="field">
      <span>{label}</span>
      <input name={name} {...more} />
      {hint && <small>{hint}</small>}
    </label>
  );
}

/** A button that copies a text. `says` is said instead of the text, if that is a secret. */
export function Copy({ text, title = "Copy", says }: { text: string; title?: string; says?: string }) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    say(says ?? `Copied: ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`);
  };
  return (
    <button type="button" class="quiet" onClick={() => void copy()} title={says ? title : text}>
      {title}
    </button>
  );
}
