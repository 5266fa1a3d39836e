/** A part of the operator's page: what it is about, how many there are, and the runbook. */

import type { ComponentChildren } from "preact";

import type { Watched } from "../api/watch";
import { Problem } from "../parts/page";
import { RunbookLink } from "../parts/runbook";

interface Props {
  id: string;
  title: string;
  /** The section of the documentation that says what to do, such as `operations#quarantined`. */
  runbook: string;
  /** What is said when there is nothing: then that is all. */
  nothing?: string | undefined;
  actions?: ComponentChildren;
  children?: ComponentChildren;
}

export function Section({ id, title, runbook, nothing, actions, children }: Props) {
  return (
    <section id={id} class="part">
      <div class="page-top">
        <h2>{title}</h2>
        <div class="actions">
          {actions}
          <RunbookLink of={runbook} what={title} />
        </div>
      </div>
      {nothing && (
        <p class="nothing">
          <span class="good" aria-hidden="true">
            ✓
          </span>{" "}
          {nothing}
        </p>
      )}
      {children}
    </section>
  );
}

/** Parts that come once they are known. Until then the glance at the top says that they are not. */
export function Known<T>({ of, children }: { of: Watched<T>; children: (value: T) => ComponentChildren }) {
  return (
    <>
      {of.error && !(of.error.isSignedOut && of.value !== undefined) && <Problem error={of.error} retry={of.refresh} />}
      {of.value !== undefined && children(of.value)}
    </>
  );
}
