/** The alarms as CloudWatch has them, those first that are raised; and the messages that no function could take. */

import { Copy } from "../parts/action";
import { Shown } from "../parts/page";
import { RunbookLink } from "../parts/runbook";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import type { Watched } from "../api/watch";
import { Section } from "./section";
import type { Alarm, AlarmsAndLetters, DeadLetterQueue } from "./watch";

/** Alarms whose condition this page shows too, and where. */
const HERE: Record<string, string> = {
  CanaryFailing: "canaries",
  DeadLetters: "dead-letters",
  ForgottenHold: "holds",
  Misconfigured: "misconfigured",
  NotPutBack: "not-put-back",
  Quarantined: "quarantine",
  Strays: "leaks",
  UnknownErrors: "failures",
  Unlisted: "unlisted",
};

/** A sign, a word and a tone for each state. */
const STATES: Record<Alarm["state"], [string, string, string]> = {
  alarm: ["!", "raised", "bad"],
  insufficient_data: ["…", "no data yet", "off"],
  ok: ["✓", "ok", "good"],
};

const COLUMNS: Column<Alarm>[] = [
  { title: "State", cell: (alarm) => <State of={alarm} /> },
  { title: "Alarm", cell: ({ section }) => (HERE[section] ? <a href={`#${HERE[section]}`}>{section}</a> : section) },
  { title: "Of", cell: (alarm) => alarm.of ?? <span class="faint">–</span> },
  { title: "Means", cell: (alarm) => alarm.what },
  { title: "Since", cell: (alarm) => <When at={alarm.since} /> },
  { title: "CloudWatch says", cell: (alarm) => alarm.reason, isMinor: true },
  {
    title: "What to do",
    cell: ({ section, name }) => <RunbookLink of={`operations#${section.toLowerCase()}`} what={name} />,
  },
];

function State({ of: { state } }: { of: Alarm }) {
  const [sign, word, tone] = STATES[state];
  return (
    <strong class={tone}>
      <span aria-hidden="true">{sign}</span> {word}
    </strong>
  );
}

export function AlarmSections({ of }: { of: Watched<AlarmsAndLetters> }) {
  return (
    <Shown of={of}>
      {({ alarms, dead_letters }) => (
        <>
          <DeadLetters found={dead_letters} />
          <Alarms found={alarms} />
        </>
      )}
    </Shown>
  );
}

function Alarms({ found: { count, items, problem } }: { found: AlarmsAndLetters["alarms"] }) {
  const raised = items.filter((each) => each.state === "alarm");
  const others = items.filter((each) => each.state !== "alarm");
  return (
    <Section
      id="alarms"
      title="Alarms"
      runbook="operations#alarms"
      nothing={count === 0 && items.length > 0 ? "No alarm is raised." : undefined}
    >
      {problem && <Unknown why={problem} />}
      {!problem && items.length === 0 && <p>This deployment has no alarms.</p>}
      {raised.length > 0 && <Table caption="Raised alarms" columns={COLUMNS} rows={raised} id={nameOf} empty="" />}
      {others.length > 0 && (
        <details>
          <summary>{inWords(others)}</summary>
          <Table caption="Other alarms" columns={COLUMNS} rows={others} id={nameOf} empty="" />
        </details>
      )}
    </Section>
  );
}

const nameOf = (alarm: Alarm): string => alarm.name;

/** How many alarms are not raised, by state. */
function inWords(others: Alarm[]): string {
  const ok = others.filter((each) => each.state === "ok").length;
  const unknown = others.length - ok;
  return [`${ok} ok`, ...(unknown ? [`${unknown} without data yet`] : [])].join(", ");
}

/** Why something is not known now. Nobody should take that for none. */
function Unknown({ why }: { why: string }) {
  return (
    <p class="problem" role="alert">
      {why}
    </p>
  );
}

const LETTER_COLUMNS: Column<DeadLetterQueue>[] = [
  { title: "Queue", cell: (queue) => queue.of },
  {
    title: "Messages",
    cell: ({ messages }) => (messages > 0 ? <strong class="bad">! {messages}</strong> : 0),
    isNumber: true,
  },
  { title: "Commands", cell: (queue) => <Commands of={queue} /> },
];

/** The commands of the runbook for a queue. */
function Commands({ of: { url, arn } }: { of: DeadLetterQueue }) {
  const look = `aws sqs receive-message --queue-url ${url} --max-number-of-messages 10 --visibility-timeout 0`;
  return (
    <div class="actions">
      <Copy title="Copy: look at them" text={look} />
      <Copy title="Copy: redrive" text={`aws sqs start-message-move-task --source-arn ${arn}`} />
      <Copy title="Copy: delete all" text={`aws sqs purge-queue --queue-url ${url}`} />
    </div>
  );
}

function DeadLetters({ found: { count, items, problem } }: { found: AlarmsAndLetters["dead_letters"] }) {
  return (
    <Section
      id="dead-letters"
      title="Dead letters"
      runbook="operations#deadletters"
      nothing={count === 0 ? "No message was taken twenty times in vain." : undefined}
    >
      {problem && <Unknown why={problem} />}
      {items.length > 0 && (
        <Table caption="Dead-letter queues" columns={LETTER_COLUMNS} rows={items} id={(queue) => queue.of} empty="" />
      )}
    </Section>
  );
}
