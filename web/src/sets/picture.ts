/** A set as a graph to draw: its jobs, or piles of jobs of a matrix. Pure. */

import type { GraphData, GraphEdge, GraphNode } from "../parts/graph/model";
import { signOf } from "../parts/state";
import { duration } from "../parts/time";
import { countsOf } from "../jobs/groups";
import type { Grid } from "./matrix";
import { ran, type JobSet, type Member } from "./members";

/** Jobs of a grid that stand as one node, and the node's id. */
export interface Pile {
  id: string;
  grid: Grid;
}

/** Smaller grids are not piled up. */
const LEAST_IN_PILE = 4;

/** Grids as piles. */
export const pilesOf = (grids: readonly Grid[]): Pile[] =>
  grids.filter((grid) => grid.members.length >= LEAST_IN_PILE).map((grid) => ({ id: `pile ${grid.name}`, grid }));

interface Options {
  /** Piles that are closed. */
  piles: readonly Pile[];
  /** Ids of the jobs of the longest path, in order. */
  path: readonly string[];
  now: number;
}

/** Nodes and edges. Edges between piles and jobs stand for all edges between their jobs. */
export function pictureOf(set: JobSet, { piles, path, now }: Options): GraphData {
  const pileOf = new Map(piles.flatMap(({ id, grid }) => grid.members.map((member) => [member.id, id] as const)));
  const nodeOf = (id: string) => pileOf.get(id) ?? id;
  const marked = new Set(path.map(nodeOf));
  const onPath = new Set(path.slice(1).map((id, index) => `${nodeOf(path[index] as string)} ${nodeOf(id)}`));
  const nodes = [
    ...set.members.filter(({ id }) => !pileOf.has(id)).map((member) => jobNode(member, set.repeated.has(member.id), marked, now)),
    ...piles.map((pile) => pileNode(pile, marked)),
  ];
  const edges = new Map<string, GraphEdge>();
  for (const { id, dependencies } of set.members)
    for (const { job } of dependencies) {
      const [from, to] = [nodeOf(job), nodeOf(id)];
      edges.set(`${from} ${to}`, { from, to, isMarked: onPath.has(`${from} ${to}`) });
    }
  return { nodes, edges: [...edges.values()] };
}

function jobNode(member: Member, isRepeated: boolean, marked: ReadonlySet<string>, now: number): GraphNode {
  const word = member.outcome ?? member.state;
  const [sign, tone] = signOf(word);
  const spent = member.times.started ? ` ${duration(ran(member, now))}` : "";
  const waits = member.waits_for ? `, waits for ${member.waits_for}` : "";
  return {
    id: member.id,
    label: member.name,
    note: `${word}${spent}`,
    title: `${member.name}: ${word}${spent}${waits}${isRepeated ? ", submitted again later" : ""}`,
    href: `/jobs/${member.id}`,
    sign,
    tone,
    isMarked: marked.has(member.id),
    isFaded: isRepeated,
  };
}

function pileNode({ id, grid }: Pile, marked: ReadonlySet<string>): GraphNode {
  const counts = countsOf(grid.members);
  const [sign, tone] = signOf(counts[0]?.[0] ?? "");
  const note = counts.map(([word, count]) => `${signOf(word)[0]} ${count}`).join("  ");
  const said = counts.map(([word, count]) => `${count} ${word}`).join(", ");
  return {
    id,
    label: `${grid.members.length} × ${grid.name}`,
    note,
    title: `${grid.members.length} jobs ${grid.name}: ${said}. Opens into its jobs.`,
    href: `#${anchorOf(grid)}`,
    sign,
    tone,
    shape: "pile",
    isMarked: marked.has(id),
  };
}

/** Where the page shows a grid. */
export const anchorOf = (grid: Grid): string => `grid-${grid.name.replace(/[^A-Za-z0-9]+/g, "-")}`;
