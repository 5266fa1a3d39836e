/** Where the nodes of a graph stand: from left to right, each after what it waits for. Pure, and made for a worker. */

import { Graph, layout } from "@dagrejs/dagre";

import { NODE_HEIGHT, type Box, type Placed, type Point, type Shape } from "./model";
import { ranksOf, quickly } from "./quick";

/** Between nodes of a column, and between columns. */
const NODE_GAP = 14;
const COLUMN_GAP = 56;

/** Between parts that nothing connects. */
const PART_GAP = 28;

/** Of how many stretches (each edge counts one for every column that it passes) the slower, better layout takes seconds. */
const MANY_STRETCHES = 2500;

/** How much wider than high a picture of several parts should be. */
const ASPECT = 1.8;

/** A place for each node and a line for each edge. Parts that nothing connects are placed beside each other. */
export function arrange(shape: Shape): Placed {
  const parts = partsOf(shape).map((part) => ({ part, placed: place(part) }));
  return joined(shape, parts);
}

function place(part: Shape): Placed {
  if (part.edges.length === 0) return alone(part);
  return stretches(part) > MANY_STRETCHES ? quickly(part, NODE_GAP, COLUMN_GAP) : carefully(part);
}

function alone({ nodes }: Shape): Placed {
  const [{ id, width }] = nodes as [{ id: string; width: number }];
  return { boxes: { [id]: { x: 0, y: 0, width, height: NODE_HEIGHT } }, lines: [], width, height: NODE_HEIGHT };
}

function stretches({ nodes, edges }: Shape): number {
  const ranks = ranksOf({ nodes, edges });
  return edges.reduce((sum, { from, to }) => sum + Math.abs((ranks.get(to) ?? 0) - (ranks.get(from) ?? 0)), 0);
}

function carefully({ nodes, edges }: Shape): Placed {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: NODE_GAP, ranksep: COLUMN_GAP, ranker: "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width } of nodes) graph.setNode(id, { width, height: NODE_HEIGHT });
  for (const { from, to } of edges) graph.setEdge(from, to);
  layout(graph);
  const boxes = Object.fromEntries(nodes.map(({ id }) => [id, boxOf(graph.node(id))]));
  const lines = edges.map(({ from, to }) => (graph.edge(from, to).points ?? []).map(({ x, y }: Point) => ({ x, y })));
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { boxes, lines, width, height };
}

function boxOf({ x = 0, y = 0, width, height }: { x?: number; y?: number; width: number; height: number }): Box {
  return { x: x - width / 2, y: y - height / 2, width, height };
}

/** The parts of a graph that nothing connects, the largest first. */
export function partsOf({ nodes, edges }: Shape): Shape[] {
  const near = new Map<string, string[]>(nodes.map(({ id }) => [id, []]));
  for (const { from, to } of edges) {
    near.get(from)?.push(to);
    near.get(to)?.push(from);
  }
  const number = new Map<string, number>();
  let count = 0;
  for (const { id } of nodes) {
    if (number.has(id)) continue;
    const open = [id];
    number.set(id, count);
    for (let next = open.pop(); next !== undefined; next = open.pop())
      for (const other of near.get(next) ?? []) {
        if (number.has(other)) continue;
        number.set(other, count);
        open.push(other);
      }
    count += 1;
  }
  const parts = Array.from({ length: count }, (): Shape => ({ nodes: [], edges: [] }));
  for (const node of nodes) parts[number.get(node.id) as number]?.nodes.push(node);
  for (const edge of edges) parts[number.get(edge.from) as number]?.edges.push(edge);
  return parts.sort((one, other) => other.nodes.length - one.nodes.length);
}

/** The parts in rows, each as high as its highest part. */
function joined(shape: Shape, parts: { part: Shape; placed: Placed }[]): Placed {
  const area = parts.reduce((sum, { placed }) => sum + (placed.width + PART_GAP) * (placed.height + PART_GAP), 0);
  const most = Math.max(Math.sqrt(area * ASPECT), ...parts.map(({ placed }) => placed.width));
  const boxes: Record<string, Box> = {};
  const lines = new Map<string, Point[]>();
  let [left, top, row, width] = [0, 0, 0, 0];
  for (const { part, placed } of parts) {
    if (left > 0 && left + placed.width > most) [left, top, row] = [0, top + row + PART_GAP, 0];
    for (const [id, box] of Object.entries(placed.boxes)) boxes[id] = { ...box, x: box.x + left, y: box.y + top };
    for (const [index, { from, to }] of part.edges.entries())
      lines.set(
        `${from} ${to}`,
        (placed.lines[index] ?? []).map(({ x, y }) => ({ x: x + left, y: y + top })),
      );
    width = Math.max(width, left + placed.width);
    row = Math.max(row, placed.height);
    left += placed.width + PART_GAP;
  }
  return { boxes, lines: shape.edges.map(({ from, to }) => lines.get(`${from} ${to}`) ?? []), width, height: top + row };
}
