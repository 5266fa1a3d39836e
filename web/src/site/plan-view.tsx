/** What applying a configuration would do: its keys, whom it concerns, what was changed by hand, and warnings. */

import type { ComponentChildren } from "preact";

import { DriftTable } from "../operator/pools";
import { PoolName } from "../parts/names";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { type Changes, type Difference, poolOf, SIGNS } from "./plan";

const COLUMNS: Column<Difference>[] = [
  { title: "Is", cell: (each) => <Sign of={each.sign} /> },
  { title: "Key", cell: (each) => <code>{each.path}</code> },
  { title: "Before", cell: (each) => each.before && <code>{each.before}</code> },
  { title: "After", cell: (each) => each.after && <code>{each.after}</code> },
];

export function Plan({ plan }: { plan: Changes }) {
  return (
    <>
      <h3>
        {plan.differences.length === 0
          ? "It is good, and would change nothing"
          : `It would change ${plan.differences.length} keys`}
      </h3>
      {plan.applied_by && (
        <p class="faint">
          Compared with what {plan.applied_by} applied <When at={plan.applied_at} />. Secrets are not shown.
        </p>
      )}
      {plan.differences.length > 0 && (
        <Table
          caption="Keys that differ"
          columns={COLUMNS}
          rows={plan.differences}
          id={(each) => each.sign + each.path}
          empty=""
        />
      )}
      <Losses plan={plan} />
      {plan.drift.length > 0 && (
        <Group title="Changed by hand since then">
          <DriftTable rows={plan.drift} />
        </Group>
      )}
      {plan.warnings.length > 0 && (
        <Group title="What it allows, and you may not mean">
          <ul class="lines">
            {plan.warnings.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </Group>
      )}
    </>
  );
}

function Sign({ of }: { of: Difference["sign"] }) {
  const [word, tone] = SIGNS[of];
  return (
    <span class={`state ${tone}`}>
      <span aria-hidden="true">{of}</span> {word}
    </span>
  );
}

function Group({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <>
      <h3>{title}</h3>
      {children}
    </>
  );
}

/** What jobs hold or wait for, and would lose. */
function Losses({ plan: { losses } }: { plan: Changes }) {
  if (losses.length === 0) return null;
  return (
    <Group title="Whom it concerns">
      <ul class="losses">
        {losses.map((each) => {
          const pool = poolOf(each.what);
          return (
            <li key={each.what} class={each.gone ? "gone" : ""}>
              {pool ? <PoolName of={pool} /> : <strong>{each.what}</strong>}: {each.summary.replace(`${each.what}: `, "")}
            </li>
          );
        })}
      </ul>
    </Group>
  );
}
