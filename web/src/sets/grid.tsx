/** A matrix as a grid: a cell for each job, which is a link to it. */

import { Link } from "wouter-preact";

import { Counts } from "../jobs/counts";
import { State } from "../parts/state";
import { duration } from "../parts/time";
import { cellKey, type Grid } from "./matrix";
import { ran, type Member } from "./members";
import { anchorOf } from "./picture";

export function GridCard({ grid, now }: { grid: Grid; now: number }) {
  const id = anchorOf(grid);
  return (
    <section class="card" id={id} aria-labelledby={`${id}-title`}>
      <h3 id={`${id}-title`}>
        {grid.name} <Counts of={grid.members} />
      </h3>
      <div class="scrolls" role="region" aria-label={`Matrix ${grid.name}`} tabIndex={0}>
        <table class="grid">
          <caption class="unseen">{grid.name}: states by what differs in the names</caption>
          <thead>
            <tr>
              <td />
              {grid.columns.map((column) => (
                <th key={column} scope="col">
                  {column || "state"}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {grid.rows.map((row) => (
              <tr key={row}>
                <th scope="row">{row}</th>
                {grid.columns.map((column) => (
                  <td key={column}>
                    <Cell member={grid.cells.get(cellKey(row, column))} now={now} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Cell({ member, now }: { member: Member | undefined; now: number }) {
  if (!member) return <span class="unseen">no job</span>;
  return (
    <Link href={`/jobs/${member.id}`} title={`${member.name}: ${member.reason ?? member.waits_for ?? member.state}`}>
      <State of={member.state} outcome={member.outcome} />
      {member.times.started && <span class="faint"> {duration(ran(member, now))}</span>}
    </Link>
  );
}
