/** A layout that is less beautiful, and takes milliseconds where the better one takes seconds. Pure. */

import { lineKey, NODE_HEIGHT, type Box, type Placed, type Point, type Shape } from "./model";

const SWEEPS = 6;

/** The column of each node: one after the last of those that it waits for. Of a cycle, one edge does not count. */
export function ranksOf({ nodes, edges }: Shape): Map<string, number> {
  const after = new Map<string, string[]>(nodes.map(({ id }) => [id, []]));
  const missing = new Map<string, number>(nodes.map(({ id }) => [id, 0]));
  for (const { from, to } of edges) {
    after.get(from)?.push(to);
    missing.set(to, (missing.get(to) ?? 0) + 1);
  }
  const ranks = new Map<string, number>();
  const open = nodes.filter(({ id }) => missing.get(id) === 0).map(({ id }) => id);
  const left = new Set(nodes.map(({ id }) => id));
  const begin = (id: string) => ranks.set(id, ranks.get(id) ?? 0);
  open.forEach(begin);
  while (left.size > 0) {
    const id = open.pop() ?? (left.values().next().value as string); // all that are left wait in a cycle: cut it here
    if (!left.delete(id)) continue;
    begin(id);
    for (const next of after.get(id) ?? []) {
      if (!left.has(next)) continue;
      ranks.set(next, Math.max(ranks.get(next) ?? 0, (ranks.get(id) as number) + 1));
      missing.set(next, (missing.get(next) as number) - 1);
      if (missing.get(next) === 0) open.push(next);
    }
  }
  return ranks;
}

/** Columns by rank; within each, nodes stand near those that they are connected with. */
export function quickly(shape: Shape, nodeGap: number, columnGap: number): Placed {
  const columns = sorted(shape, columnsOf(shape));
  const widths = new Map(shape.nodes.map(({ id, width }) => [id, width]));
  const height = Math.max(...columns.map((each) => each.length)) * (NODE_HEIGHT + nodeGap) - nodeGap;
  const boxes: Record<string, Box> = {};
  let left = 0;
  for (const column of columns) {
    const wide = Math.max(...column.map((id) => widths.get(id) ?? 0));
    const step = Math.min((height + nodeGap) / column.length, (NODE_HEIGHT + nodeGap) * 3);
    const top = (height - step * column.length + step - NODE_HEIGHT) / 2;
    column.forEach((id, row) => {
      boxes[id] = { x: left, y: top + row * step, width: widths.get(id) ?? 0, height: NODE_HEIGHT };
    });
    left += wide + columnGap;
  }
  const lines = Object.fromEntries(
    shape.edges.map((edge) => [lineKey(edge), between(boxes[edge.from] as Box, boxes[edge.to] as Box)]),
  );
  return { boxes, lines, width: left - columnGap, height };
}

function columnsOf(shape: Shape): string[][] {
  const columns: string[][] = [];
  const ranks = ranksOf(shape);
  for (const { id } of shape.nodes) (columns[ranks.get(id) ?? 0] ??= []).push(id);
  return columns.filter((each) => each !== undefined);
}

/** The columns, each sorted by where in the others its nodes' neighbours stand, on average. */
function sorted({ nodes, edges }: Shape, columns: string[][]): string[][] {
  const near = new Map<string, string[]>(nodes.map(({ id }) => [id, []]));
  for (const { from, to } of edges) {
    near.get(from)?.push(to);
    near.get(to)?.push(from);
  }
  const at = new Map<string, number>();
  const number = (column: string[]) => column.forEach((id, row) => at.set(id, (row + 0.5) / column.length));
  columns.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++)
    for (const column of sweep % 2 ? [...columns].reverse() : columns) {
      const wish = new Map(column.map((id) => [id, mean((near.get(id) ?? []).map((other) => at.get(other) ?? 0), at.get(id) ?? 0)]));
      column.sort((one, other) => (wish.get(one) ?? 0) - (wish.get(other) ?? 0));
      number(column);
    }
  return columns;
}

const mean = (numbers: number[], none: number): number =>
  numbers.length ? numbers.reduce((sum, each) => sum + each, 0) / numbers.length : none;

/** A line from the right side of a box to the left side of another; where it goes backwards, from left to right. */
export function between(from: Box, to: Box, bends: readonly Point[] = []): Point[] {
  const isForward = from.x < to.x;
  return [
    { x: from.x + (isForward ? from.width : 0), y: from.y + from.height / 2 },
    ...bends.map(({ x, y }) => ({ x, y })),
    { x: to.x + (isForward ? 0 : to.width), y: to.y + to.height / 2 },
  ];
}
