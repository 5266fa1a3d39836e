/** The site: its configuration with what a change would do, and what it is made of. */

import { ForUsers } from "../parts/gate";
import { Page } from "../parts/page";
import { Runbook } from "../parts/runbook";
import { useSession } from "../session";
import { Configuration } from "../site/configuration";
import { Entries } from "../site/entries";
import "../style/site.css";

export default function Site() {
  const { isOperator } = useSession();
  return (
    <ForUsers title="Site">
      <Page title="Site">
        {isOperator && <Configuration />}
        <Entries />
        <Runbook />
      </Page>
    </ForUsers>
  );
}
