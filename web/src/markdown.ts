/** The few forms of Markdown that the documentation uses, as data: a page makes elements of it, and no HTML is parsed. */

export type Span = { is: "text" | "code" | "strong"; text: string } | { is: "link"; text: string; to: string };

export type Block =
  | { is: "text"; spans: Span[] }
  | { is: "list"; items: Span[][]; isOrdered: boolean }
  | { is: "code"; text: string }
  | { is: "table"; rows: Span[][][] };

export interface Section {
  title: string;
  /** What links call it, as the documentation's site does. */
  slug: string;
  depth: number;
  blocks: Block[];
}

/** The sections of a page, each without those that are part of it. */
export function sections(text: string): Section[] {
  const found: Section[] = [];
  let lines: string[] = [];
  let isCode = false;
  const end = () => {
    const last = found.at(-1);
    if (last) last.blocks = blocks(lines);
    lines = [];
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) isCode = !isCode;
    const heading = isCode ? null : /^(#+) (.*)$/.exec(line);
    if (!heading) lines.push(line);
    else {
      end();
      const title = heading[2] as string;
      found.push({ title, slug: slug(title), depth: (heading[1] as string).length, blocks: [] });
    }
  }
  end();
  return found;
}

/** A section and those that are part of it. */
export function partsOf(all: readonly Section[], wanted: string): Section[] {
  const first = all.findIndex((each) => each.slug === wanted);
  const top = all[first];
  if (!top) return [];
  const after = all.findIndex((each, index) => index > first && each.depth <= top.depth);
  return all.slice(first, after < 0 ? undefined : after);
}

const slug = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, "")
    .trim()
    .replace(/\s+/g, "-");

/** Blocks are parted by empty lines; a code block goes on until its end. */
function blocks(lines: readonly string[]): Block[] {
  const found: Block[] = [];
  let part: string[] = [];
  let code: string[] | undefined;
  const end = () => {
    if (part.length) found.push(block(part));
    part = [];
  };
  for (const line of lines) {
    if (line.startsWith("```")) {
      end();
      if (code) found.push({ is: "code", text: code.join("\n") });
      code = code ? undefined : [];
    } else if (code) code.push(line);
    else if (line.trim() === "") end();
    else part.push(line);
  }
  end();
  return found;
}

const ITEM = /^(?:- |\d+\. )/;

function block(lines: readonly string[]): Block {
  const first = lines[0] as string;
  if (first.startsWith("|")) return { is: "table", rows: lines.filter((each) => !/^[|\s:-]+$/.test(each)).map(cells) };
  if (!ITEM.test(first)) return { is: "text", spans: spans(lines.join(" ")) };
  const items: string[] = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
    else items.push(`${items.pop()} ${line.trim()}`);
  }
  return { is: "list", items: items.map(spans), isOrdered: /^\d/.test(first) };
}

const cells = (line: string): Span[][] =>
  line
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((each) => spans(each.trim()));

const SPAN = /`([^`]+)`|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)]+)\)/g;

function spans(text: string): Span[] {
  const found: Span[] = [];
  let from = 0;
  for (const match of text.matchAll(SPAN)) {
    if (match.index > from) found.push({ is: "text", text: text.slice(from, match.index) });
    const [all, code, strong, words, to] = match;
    if (code !== undefined) found.push({ is: "code", text: code });
    else if (strong !== undefined) found.push({ is: "strong", text: plain(strong) });
    else found.push({ is: "link", text: plain(words as string), to: to as string });
    from = match.index + all.length;
  }
  if (from < text.length) found.push({ is: "text", text: text.slice(from) });
  return found;
}

const plain = (text: string): string => text.replace(/`/g, "").replace(/\[([^\]]+)\]\([^)]+\)/g, "$1");
