/** A part of the operator's page: what it is about, how many there are, and the runbook. */

import type { ComponentChildren } from "preact";

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

/** That a list is cut: the service sends the first of many. */
export function Cut({ of: { count, items } }: { of: { count: number; items: readonly unknown[] } }) {
  if (count <= items.length) return null;
  return (
    <p class="faint">
      These are the first {items.length} of {count}.
    </p>
  );
}
