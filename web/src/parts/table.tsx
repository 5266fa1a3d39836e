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

/** Rows that stand together, below a heading if there is one. */
export interface Group<Row> {
  key: string;
  head?: ComponentChildren;
  rows: readonly Row[];
}

interface Props<Row> {
  /** What the table shows, for who does not see it. */
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  /** Rows that belong together, each group below a heading; instead of `rows`. */
  groups?: readonly Group<Row>[];
  id: (row: Row) => string;
  /** What stands there when there are no rows. */
  empty: ComponentChildren;
  isMarked?: (row: Row) => boolean;
}

export function Table<Row>({ caption, columns, rows, groups, id, empty, isMarked }: Props<Row>) {
  const bodies: readonly Group<Row>[] = groups ?? (rows.length ? [{ key: "all", rows }] : []);
  if (bodies.length === 0) return <div class="empty">{empty}</div>;
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
        {bodies.map((body) => (
          <tbody key={body.key} class={body.head ? "grouped" : ""}>
            {body.head && (
              <tr class="group">
                <th scope="rowgroup" colSpan={columns.length}>
                  {body.head}
                </th>
              </tr>
            )}
            {body.rows.map((row) => (
              <tr key={id(row)} class={isMarked?.(row) ? "marked" : ""}>
                {columns.map((each) => (
                  <td key={each.title} class={classes(each)} data-title={each.title}>
                    {each.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

const classes = ({ isNumber, isMinor }: { isNumber?: boolean; isMinor?: boolean }): string =>
  [isNumber && "number", isMinor && "minor"].filter(Boolean).join(" ");
