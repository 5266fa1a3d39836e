/** The alarms, as the documentation has them: which this page shows too, and which only CloudWatch knows. */

import { RunbookLink, useDocs } from "../parts/runbook";
import { Section } from "./section";

/** Alarms whose condition the service itself can tell, and where on this page it does. */
const HERE: Record<string, string> = {
  CanaryFailing: "canaries",
  ForgottenHold: "holds",
  Misconfigured: "misconfigured",
  NotPutBack: "not-put-back",
  Quarantined: "quarantine",
  Strays: "leaks",
  UnknownErrors: "failures",
  Unlisted: "unlisted",
};

export function Alarms() {
  const [, ...alarms] = useDocs("operations", "alarms") ?? [];
  const names = alarms.map((each) => each.title);
  return (
    <Section id="alarms" title="Alarms" runbook="operations#watch-a-deployment">
      <p class="faint">
        CloudWatch raises the alarms, and mails them. The service does not know which of them are raised. What these are
        about stands on this page:
      </p>
      <List names={names.filter((each) => HERE[each])} />
      <p class="faint">
        These are on what only CloudWatch measures, such as dead letters and errors of functions: look at the deployment's
        dashboard there.
      </p>
      <List names={names.filter((each) => !HERE[each])} />
    </Section>
  );
}

function List({ names }: { names: string[] }) {
  return (
    <ul class="alarms">
      {names.map((name) => (
        <li key={name}>
          {HERE[name] ? <a href={`#${HERE[name]}`}>{name}</a> : name}{" "}
          <RunbookLink of={`operations#${name.toLowerCase()}`} what={name} />
        </li>
      ))}
    </ul>
  );
}
