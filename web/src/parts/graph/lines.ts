/** Edges as paths: one for each way of drawing them, as thousands of elements would make a picture slow. Pure. */

import { drawn, lineKey, type GraphData, type Placed, type Point } from "./model";

export interface Lines {
  /** The class of its edges. */
  look: string;
  path: string;
}

export function linesOf(graph: GraphData, { lines }: Placed): Lines[] {
  const paths = new Map<string, string[]>();
  for (const edge of drawn(graph)) {
    const line = lines[lineKey(edge)];
    if (!line || line.length < 2) continue; // it is not placed yet
    const look = `${edge.kind ?? "plain"}${edge.isMarked ? " on-path" : ""}`;
    const path = paths.get(look) ?? [];
    paths.set(look, path);
    path.push(curve(line));
  }
  return [...paths].map(([look, path]) => ({ look, path: path.join("") })).sort((one, other) => one.look.length - other.look.length);
}

/** A soft line through some points, which leaves and arrives sideways. */
function curve(line: readonly Point[]): string {
  const [first, ...rest] = line as [Point, ...Point[]];
  let [path, last] = [`M${round(first.x)} ${round(first.y)}`, first];
  for (const next of rest) {
    const half = round((last.x + next.x) / 2);
    path += `C${half} ${round(last.y)} ${half} ${round(next.y)} ${round(next.x)} ${round(next.y)}`;
    last = next;
  }
  return path;
}

const round = (number: number): number => Math.round(number * 10) / 10;
