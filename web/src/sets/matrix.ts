/**
 * Matrices of a set: jobs of one file, or jobs whose names differ in one or two words, as a grid. Pure.
 *
 * A file's matrix names its jobs `build (gimlet, debug)`, or fills the values into a name: `build gimlet debug`. Where the
 * combination of a job is known, it decides; otherwise the names do, which is a way to show jobs and no more.
 */

import type { Member } from "./members";

export interface Grid {
  /** What the names have in common, with `*` for what differs. */
  name: string;
  rows: string[];
  columns: string[];
  /** The job of a row and a column; undefined if there is none. Of several of one name the last one is meant. */
  cells: Map<string, Member>;
  members: Member[];
}

/** The key of a cell. */
export const cellKey = (row: string, column: string): string => `${row}\n${column}`;

/** A grid needs so many jobs if only one word differs, and so many if two do. */
const LEAST_IN_ROW = 3;
const LEAST_IN_GRID = 4;

/** How much of a grid of two axes there must be, for it to be one and not chance. */
const LEAST_FILLED = 0.5;

/** Words after which more are not looked at: names of that many words differ in too many ways. */
const MOST_WORDS = 10;

interface Placed {
  member: Member;
  row: string;
  column: string;
}

/** All grids, the largest first. Each job is in one at most. */
export function gridsOf(members: readonly Member[]): Grid[] {
  const known = [...byMatrix(members)];
  const taken = new Set(known.flatMap((grid) => grid.members));
  const found = byNames(members.filter((each) => !taken.has(each)));
  return [...known, ...found].sort((one, other) => other.members.length - one.members.length);
}

function* byMatrix(members: readonly Member[]): Generator<Grid> {
  const files = new Map<string, Placed[]>();
  for (const member of members) {
    const values = Object.values(member.matrix);
    if (values.length === 0) continue;
    const name = starred(member.name, values);
    const column = values.length > 1 ? (values.at(-1) as string) : "";
    const row = values.slice(0, values.length > 1 ? -1 : undefined).join(", ");
    add(files, `${Object.keys(member.matrix).join()} ${name}`, { member, row, column });
  }
  for (const [key, placed] of files) yield gridOf(key.slice(key.indexOf(" ") + 1), placed);
}

/** A name with `*` for the values of its matrix. */
function starred(name: string, values: readonly string[]): string {
  const bracket = ` (${values.join(", ")})`;
  if (name.endsWith(bracket)) return `${name.slice(0, -bracket.length)} (*)`;
  return [...values].sort((one, other) => other.length - one.length).reduce((text, value) => text.replace(value, "*"), name);
}

/** Grids by what names have in common: two words that differ first, then one. */
function byNames(members: readonly Member[]): Grid[] {
  const left = new Set(members);
  const found: Grid[] = [];
  for (const axes of [2, 1]) {
    const groups = [...likeNames([...left], axes)].sort(([, one], [, other]) => other.length - one.length);
    for (const [name, placed] of groups) {
      const rest = placed.filter(({ member }) => left.has(member));
      if (!isGrid(rest, axes)) continue;
      found.push(gridOf(name, rest));
      for (const { member } of rest) left.delete(member);
    }
  }
  return found;
}

function likeNames(members: readonly Member[], axes: number): Map<string, Placed[]> {
  const groups = new Map<string, Placed[]>();
  for (const member of members) {
    const words = wordsOf(member.name);
    const places = [...words.keys()].filter((place) => /[\p{L}\p{N}]/u.test(words[place] as string));
    if (places.length > MOST_WORDS) continue;
    for (const first of places)
      for (const second of axes === 2 ? places.filter((place) => place > first) : [first]) {
        const name = words.map((word, place) => (place === first || place === second ? "*" : word)).join("");
        add(groups, `${name}`, { member, row: words[first] as string, column: axes === 2 ? (words[second] as string) : "" });
      }
  }
  return groups;
}

/** A name's words, and what stands between them. Values in brackets are words, whatever is in them. */
export function wordsOf(name: string): string[] {
  const bracket = /^(.*) \(([^()]+)\)$/.exec(name);
  if (bracket) return [`${bracket[1]} (`, ...(bracket[2] as string).split(", ").flatMap((value, place) => (place ? [", ", value] : [value])), ")"];
  return name.split(/([\s/_:,.-]+)/).filter(Boolean);
}

function isGrid(placed: readonly Placed[], axes: number): boolean {
  const rows = new Set(placed.map(({ row }) => row)).size;
  if (axes === 1) return rows >= LEAST_IN_ROW;
  const columns = new Set(placed.map(({ column }) => column)).size;
  const cells = new Set(placed.map(({ row, column }) => cellKey(row, column))).size;
  return rows > 1 && columns > 1 && cells >= LEAST_IN_GRID && cells >= rows * columns * LEAST_FILLED;
}

function gridOf(name: string, placed: readonly Placed[]): Grid {
  return {
    name,
    rows: [...new Set(placed.map(({ row }) => row))].sort(naturally),
    columns: [...new Set(placed.map(({ column }) => column))].sort(naturally),
    cells: new Map(placed.map(({ member, row, column }) => [cellKey(row, column), member])),
    members: placed.map(({ member }) => member),
  };
}

const naturally = new Intl.Collator(undefined, { numeric: true }).compare;

function add(groups: Map<string, Placed[]>, key: string, placed: Placed): void {
  const group = groups.get(key);
  if (group) group.push(placed);
  else groups.set(key, [placed]);
}
