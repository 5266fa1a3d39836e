/** A page for operators: others are told so. */

import type { ComponentChildren } from "preact";

import { useSession } from "../session";
import { Page } from "./page";

export function ForOperators({ title, children }: { title: string; children: ComponentChildren }) {
  const { isOperator } = useSession();
  if (isOperator) return <>{children}</>;
  return (
    <Page title={title}>
      <p>Only operators see this. What a job of yours waits for, its own page says.</p>
    </Page>
  );
}
