/** Where the nodes of a graph stand: from left to right, each after what it waits for. Pure, and made for a worker. */

import { Graph, layout } from "@dagrejs/dagre";

import { lineKey, NODE_HEIGHT, type Box, type Placed, type Point, type Shape } from "./model";
import { between, quickly, ranksOf } from "./quick";

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
  const parts = partsOf(shape);
  const single = parts.filter(({ edges }) => edges.length === 0).flatMap(({ nodes }) => nodes);
  const placed = parts.filter(({ edges }) => edges.length > 0).map(place);
  return joined(single.length > 0 ? [...placed, inRows(single, placed)] : placed);
}

function place(part: Shape): Placed {
  return stretches(part) > MANY_STRETCHES ? quickly(part, NODE_GAP, COLUMN_GAP) : carefully(part);
}

/** Nodes that nothing is connected with, in columns that are no wider together than the widest of the other parts. */
function inRows(nodes: Shape["nodes"], others: readonly Placed[]): Placed {
  const wide = Math.max(...nodes.map(({ width }) => width)) + NODE_GAP;
  const square = Math.sqrt(nodes.length * wide * (NODE_HEIGHT + NODE_GAP) * ASPECT);
  const columns = Math.min(nodes.length, Math.max(1, Math.floor(Math.max(square, ...others.map(({ width }) => width)) / wide)));
  const boxes: Record<string, Box> = {};
  for (const [index, { id, width }] of nodes.entries())
    boxes[id] = { x: (index % columns) * wide, y: Math.floor(index / columns) * (NODE_HEIGHT + NODE_GAP), width, height: NODE_HEIGHT };
  return { boxes, lines: {}, width: columns * wide - NODE_GAP, height: Math.ceil(nodes.length / columns) * (NODE_HEIGHT + NODE_GAP) - NODE_GAP };
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
  const bends = ({ from, to }: Shape["edges"][number]) => ((graph.edge(from, to).points ?? []) as Point[]).slice(1, -1);
  const line = (edge: Shape["edges"][number]) => between(boxes[edge.from] as Box, boxes[edge.to] as Box, bends(edge));
  const lines = Object.fromEntries(edges.map((edge) => [lineKey(edge), line(edge)]));
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
function joined(parts: Placed[]): Placed {
  const area = parts.reduce((sum, { width, height }) => sum + (width + PART_GAP) * (height + PART_GAP), 0);
  const most = Math.max(Math.sqrt(area * ASPECT), ...parts.map(({ width }) => width));
  const whole: Placed = { boxes: {}, lines: {}, width: 0, height: 0 };
  let [left, top] = [0, 0];
  for (const part of parts) {
    if (left > 0 && left + part.width > most) [left, top] = [0, whole.height + PART_GAP];
    for (const [id, box] of Object.entries(part.boxes)) whole.boxes[id] = { ...box, x: box.x + left, y: box.y + top };
    for (const [key, line] of Object.entries(part.lines))
      whole.lines[key] = line.map(({ x, y }) => ({ x: x + left, y: y + top }));
    whole.width = Math.max(whole.width, left + part.width);
    whole.height = Math.max(whole.height, top + part.height);
    left += part.width + PART_GAP;
  }
  return whole;
}
