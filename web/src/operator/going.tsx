/** Artifacts that go soon: what the sweep would delete if nothing changes. */

import { Link } from "wouter-preact";

import type { Schemas } from "../api/client";
import { Copy } from "../parts/action";
import { Table, type Column } from "../parts/table";
import { bytes, When } from "../parts/time";
import { Section } from "./section";

type Going = Schemas["GoingView"];

const COLUMNS: Column<Going>[] = [
  { title: "Goes", cell: (each) => <When at={each.at} /> },
  { title: "Artifact", cell: (each) => <Path of={each} /> },
  { title: "Size", cell: (each) => <span title={`${each.size} B`}>{bytes(each.size)}</span>, isNumber: true },
  { title: "Why", cell: (each) => each.why },
];

const SHOWN = 20;

/** Times within which they go: words, and seconds. */
export const WITHIN: Record<string, number> = { "1 h": 3600, "1 d": 86_400, "7 d": 604_800, "30 d": 2_592_000 };

interface Props {
  found: Schemas["ForeseenView"];
  within: string;
  change: (within: string) => void;
}

export function GoingSection({ found: { items, is_whole }, within, change }: Props) {
  const rows = items.toSorted((one, other) => one.at.localeCompare(other.at)).slice(0, SHOWN);
  const size = items.reduce((sum, each) => sum + each.size, 0);
  const more = is_whole ? "" : "at least ";
  return (
    <Section
      id="going"
      title="Artifacts about to go"
      runbook="retention#how-artifacts-are-deleted"
      nothing={items.length === 0 ? `None goes within ${within}.` : undefined}
      actions={
        <>
          <Within value={within} change={change} />
          <Copy text="penstock artifact sweep --dry-run" title="As command" />
        </>
      }
    >
      {items.length > 0 && (
        <>
          <p>
            <strong>
              {more}
              {items.length}
            </strong>{" "}
            {items.length === 1 ? "artifact goes" : "artifacts go"} within {within}, {more}
            <span title={`${size} B`}>{bytes(size)}</span> in all. {items.length > SHOWN && `These are the first ${SHOWN}. `}
            Whoever needs one can pin it: see <Link href="/artifacts">Files</Link>.
          </p>
          <Table caption="Artifacts about to go" columns={COLUMNS} rows={rows} id={(each) => each.id} empty="" />
        </>
      )}
    </Section>
  );
}

function Within({ value, change }: { value: string; change: (value: string) => void }) {
  return (
    <label class="within">
      within{" "}
      <select value={value} onChange={(event) => change(event.currentTarget.value)}>
        {Object.keys(WITHIN).map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
}

function Path({ of }: { of: Going }) {
  return (
    <span>
      {of.path} <span class="faint mono">{of.id}</span>
    </span>
  );
}
