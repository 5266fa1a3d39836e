/** Lists of which all rows are wanted, asked page by page, for pages that count or sort. */

import type { Answer } from "./client";

interface Listed<Row> {
  items: Row[];
  next?: string | null;
}

/** More rows than this are not asked for: a page that shows more than that shows nothing. */
const PAGES = 50;

export interface Every<Row> {
  rows: Row[];
  /** Whether these are all. */
  isWhole: boolean;
}

/** All rows of a list; or the refusal of the first page that was refused. */
export async function every<Row>(request: (page: string) => Promise<Answer<Listed<Row>>>): Promise<Answer<Every<Row>>> {
  const rows: Row[] = [];
  let page: string | null | undefined = "";
  for (let count = 0; count < PAGES && page != null; count += 1) {
    const { data, error, response }: Answer<Listed<Row>> = await request(page);
    if (!response.ok || !data) return { error, response };
    rows.push(...data.items);
    page = data.next;
  }
  return { data: { rows, isWhole: page == null }, response: new Response() };
}
