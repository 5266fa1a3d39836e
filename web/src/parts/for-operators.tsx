/** What stands on a page for who may not see what it shows. */

import { Page } from "./page";

export function ForOperators({ title }: { title: string }) {
  return (
    <Page title={title}>
      <p>Only operators see this. What a job of yours waits for, its own page says.</p>
    </Page>
  );
}
