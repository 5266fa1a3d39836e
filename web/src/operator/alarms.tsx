/** The alarms: which of them this page shows too, and which only CloudWatch knows. */

import { RunbookLink } from "../parts/runbook";
import { Section } from "./section";

/** Alarms whose condition the service itself can tell, and where on this page it does. */
const HERE: [string, string][] = [
  ["CanaryFailing", "canaries"],
  ["ForgottenHold", "holds"],
  ["Misconfigured", "misconfigured"],
  ["NotPutBack", "not-put-back"],
  ["Quarantined", "quarantine"],
  ["Strays", "leaks"],
  ["UnknownErrors", "failures"],
  ["Unlisted", "unlisted"],
];

/** Alarms on what only AWS measures. */
const ELSEWHERE = [
  "ApiErrors",
  "BootFailures",
  "BytesLost",
  "DeadLetters",
  "FailedNudges",
  "FlowsFailed",
  "FlowsThrottled",
  "FunctionErrors",
  "FunctionThrottles",
  "JobsErrored",
  "OldestWait",
  "QueueAge",
  "StoreUnlisted",
  "SweepLate",
  "SweepStopped",
  "TableThrottled",
  "Untidy",
];

const runbook = (alarm: string): string => `operations#${alarm.toLowerCase()}`;

export function Alarms() {
  return (
    <Section id="alarms" title="Alarms" runbook="operations#watch-a-deployment">
      <p class="faint">
        CloudWatch raises the alarms, and mails them. The service does not know which of them are raised; of these, this page
        shows what they are about:
      </p>
      <ul class="alarms">
        {HERE.map(([alarm, id]) => (
          <li key={alarm}>
            <a href={`#${id}`}>{alarm}</a> <RunbookLink of={runbook(alarm)} what={alarm} />
          </li>
        ))}
      </ul>
      <p class="faint">These are on what only CloudWatch measures. Look at the dashboard of the deployment there:</p>
      <ul class="alarms">
        {ELSEWHERE.map((alarm) => (
          <li key={alarm}>
            {alarm} <RunbookLink of={runbook(alarm)} what={alarm} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
