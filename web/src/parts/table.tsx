/** A table that becomes a list of cards on a narrow screen. */

import type { ComponentChildren } from "preact";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  /** Numbers stand to the right. */
  isNumber?: boolean;
  /** Not shown on narrow screens. */
  isMinor?: boolean;
}

interface Props<Row> {
  /** What the table shows, for who does not see it. */
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  id: (row: Row) => string;
  /** What stands there when there are no rows. */
  empty: ComponentChildren;
  isMarked?: (row: Row) => boolean;
}

export function Table<Row>({ caption, columns, rows, id, empty, isMarked }: Props<Row>) {
  if (rows.length === 0) return <div class="empty">{empty}</div>;
  return (
    <div class="scrolls" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((each) => (
              <th key={each.title} scope="col" class={classes(each)}>
                {each.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)} class={isMarked?.(row) ? "marked" : ""}>
              {columns.map((each) => (
                <td key={each.title} class={classes(each)} data-title={each.title}>
                  {each.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const classes = ({ isNumber, isMinor }: { isNumber?: boolean; isMinor?: boolean }): string =>
  [isNumber && "number", isMinor && "minor"].filter(Boolean).join(" ");
