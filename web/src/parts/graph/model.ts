/**
 * Graphs of things that wait for each other. How to draw one:
 *
 *   const graph = useMemo(() => ({ nodes, edges }), [...]);      // model.ts: what there is
 *   <Graph label="What waits for what" graph={graph} onOpen={(id) => ...} />   // graph.tsx: places it and draws it
 *
 * Nodes are placed in a worker (use-layout.ts), again only if nodes, their widths or edges change; a change of state
 * draws again and moves nothing. Without `onOpen` a node is a link to its `href`; with it a plain click calls `onOpen`.
 * Put a table that says the same beside the graph: it is for who does not see the picture.
 */

import type { Tone } from "../state";

export interface GraphNode {
  id: string;
  /** The first line. A long one is shortened in the middle. */
  label: string;
  /** The second line, in small letters. */
  note?: string;
  /** What a screen reader says, and what is shown when pointed at: name and state. */
  title: string;
  href: string;
  /** The sign before the label, so that nobody depends on the colour. */
  sign: string;
  /** The colour; `signOf` of parts/state.tsx has both for a state. */
  tone: Tone;
  /** A pile stands for several things; a pool is drawn rounded. */
  shape?: "job" | "pool" | "pile";
  /** On a path that is pointed out. */
  isMarked?: boolean;
  /** Something that counts no longer. */
  isFaded?: boolean;
}

export interface GraphEdge {
  from: string;
  to: string;
  /** `waits` is dashed. */
  kind?: "plain" | "waits";
  isMarked?: boolean;
}

export interface GraphData {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
}

/** A box, by its upper left corner. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

/** What the layout needs to know. It can be sent to a worker. */
export interface Shape {
  nodes: { id: string; width: number }[];
  edges: { from: string; to: string }[];
}

/** Where everything is: the boxes by the ids of the nodes, the lines by `lineKey`. */
export interface Placed {
  boxes: Record<string, Box>;
  lines: Record<string, Point[]>;
  width: number;
  height: number;
}

export const lineKey = ({ from, to }: { from: string; to: string }): string => `${from} ${to}`;

export const NODE_HEIGHT = 42;
const LABEL_CHARS = 26;
const LEAST_WIDTH = 152;
/** Of a semi-bold letter of 13 px: of wide fonts, such as DejaVu Sans, on average. */
const LABEL_CHAR = 8.4;
const NOTE_CHAR = 6.2;
const PADDING = 44;

/**
 * How wide a node is: its label is measured by counting, so that the layout needs no page. The second line does not count,
 * so that nothing moves when it changes; `noteFor` makes it fit.
 */
export const widthOf = ({ label }: GraphNode): number =>
  Math.round(Math.max(LEAST_WIDTH, Math.min(label.length, LABEL_CHARS) * LABEL_CHAR + PADDING));

/** The first line, as it fits into the widest node. */
export const labelFor = ({ label }: GraphNode): string => shorten(label, LABEL_CHARS);

/** The second line, as it fits into a node of a width. */
export const noteFor = ({ note = "" }: GraphNode, width: number): string => shorten(note, Math.floor((width - PADDING) / NOTE_CHAR));

/** A text of at most so many letters: the middle is left out, as names differ at their ends. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return `${text.slice(0, most - 1 - tail)}…${text.slice(-tail)}`;
}

/** What decides where things are. Edges to nodes that are not there are left out, and so are loops. */
export function shapeOf({ nodes, edges }: GraphData): Shape {
  return {
    nodes: nodes.map((each) => ({ id: each.id, width: widthOf(each) })),
    edges: drawn({ nodes, edges }).map(({ from, to }) => ({ from, to })),
  };
}

/** The edges between nodes that are there. */
export function drawn({ nodes, edges }: GraphData): GraphEdge[] {
  const ids = new Set(nodes.map((each) => each.id));
  return edges.filter((each) => each.from !== each.to && ids.has(each.from) && ids.has(each.to));
}
