/** What GitHub had to be asked for again, and what led to nothing yet. */

import { api, ask, type Schemas } from "../api/client";
import { Action, Copy } from "../parts/action";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { Section } from "./section";
import type { Attention } from "./watch";

type Delivery = Schemas["DeliveryView"];

interface Props {
  found: Attention["deliveries"];
  then: () => void;
}

export function Deliveries({ found: { items, of }, then }: Props) {
  const columns: Column<Delivery>[] = [
    { title: "Received", cell: (each) => <When at={each.received} /> },
    { title: "Event", cell: (each) => `${each.event} ${each.action}`.trim() },
    { title: "Repository", cell: (each) => each.repository ?? <span class="faint">none: it is ignored</span> },
    { title: "By", cell: (each) => each.sender, isMinor: true },
    {
      title: "Commit",
      cell: (each) => each.commit && <code title={each.commit}>{each.commit.slice(0, 12)}</code>,
      isMinor: true,
    },
    { title: "Missed", cell: (each) => (each.missed ? <span class="wait">‖ missed at first</span> : "no") },
    { title: "Led to", cell: (each) => each.outcome ?? <span class="wait">… nothing yet</span> },
    { title: "Actions", cell: (each) => <Redeliver delivery={each} then={then} /> },
  ];
  return (
    <Section
      id="deliveries"
      title="Deliveries of GitHub"
      runbook="github#troubleshooting-operators"
      nothing={items.length === 0 ? nothing(of) : undefined}
    >
      {items.length > 0 && (
        <Table
          caption="Deliveries that were missed or led to nothing yet"
          columns={columns}
          rows={items}
          id={(each) => each.id}
          empty=""
        />
      )}
    </Section>
  );
}

const nothing = (count: number): string =>
  count === 0
    ? "GitHub delivered nothing within 30 days."
    : `Of the newest ${count === 1 ? "delivery" : `${count} deliveries`}, none was missed, and each led to something.`;

function Redeliver({ delivery: { id, repository }, then }: { delivery: Delivery; then: () => void }) {
  return (
    <div class="actions">
      <Action
        title="Redeliver"
        run={() => ask(api.POST("/v1/github/deliveries/{delivery}/redeliver", { params: { path: { delivery: id } } }))}
        done="The delivery is handled once more"
        then={then}
        isDisabled={repository === null}
      />
      <Copy text={`penstock github redeliver ${id}`} title="As command" />
    </div>
  );
}
