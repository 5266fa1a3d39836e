/** The site: its configuration with what a change would do, and what it is made of. */

import { useState } from "preact/hooks";

import { ForUsers } from "../parts/gate";
import { Page } from "../parts/page";
import { Runbook } from "../parts/runbook";
import { useSession } from "../session";
import { Configuration } from "../site/configuration";
import { Entries } from "../site/entries";
import "../style/site.css";

export default function Site() {
  const { isOperator } = useSession();
  const [applied, setApplied] = useState(0);
  return (
    <ForUsers title="Site">
      <Page title="Site">
        {isOperator && <Configuration then={() => setApplied((count) => count + 1)} />}
        <Entries key={applied} />
        <Runbook />
      </Page>
    </ForUsers>
  );
}
