/** A node of a graph: a link with a sign, a name and a line more; from afar, a block of its colour. */

import { memo } from "preact/compat";

import { labelFor, noteFor, type Box, type GraphNode } from "./model";

/** How much of a node can be read: all, only its sign, or nothing but its colour. */
export type Detail = "near" | "far" | "tiny";

interface Props {
  node: GraphNode;
  box: Box;
  detail: Detail;
  /** Whether Tab comes to it. */
  isStop: boolean;
  isChosen: boolean;
}

export const Node = memo(({ node, box, detail, isStop, isChosen }: Props) => {
  const classes = ["node", node.tone, node.isMarked && "on-path", node.isFaded && "faded", isChosen && "chosen"];
  return (
    <a
      class={classes.filter(Boolean).join(" ")}
      href={node.href}
      data-node={node.id}
      aria-label={detail === "tiny" ? node.title : undefined}
      tabIndex={isStop ? 0 : -1}
      draggable={false}
    >
      {detail !== "tiny" && <title>{node.title}</title>}
      <g transform={`translate(${Math.round(box.x)} ${Math.round(box.y)})`}>
        {node.shape === "pile" && <rect class="under" x={5} y={5} width={box.width} height={box.height} rx={6} />}
        <rect class="box" width={box.width} height={box.height} rx={node.shape === "pool" ? box.height / 2 : 6} />
        {detail === "near" && <Texts node={node} box={box} />}
        {detail === "far" && (
          <text class="sign large" x={box.width / 2} y={box.height / 2 + 11}>
            {node.sign}
          </text>
        )}
      </g>
    </a>
  );
}, isSame);

/** Nodes are made anew with each answer of the service, and most say the same. */
function isSame(before: Props, after: Props): boolean {
  const { node: one, ...old } = before;
  const { node: other, ...fresh } = after;
  return isShallow(one, other) && isShallow(old, fresh);
}

function isShallow<T extends object>(one: T, other: T): boolean {
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof T>;
  return [...keys].every((key) => one[key] === other[key]);
}

function Texts({ node, box }: { node: GraphNode; box: Box }) {
  const middle = box.height / 2;
  return (
    <>
      <text class="sign" x={18} y={middle + 5}>
        {node.sign}
      </text>
      <text class="label" x={32} y={node.note ? middle - 2 : middle + 5}>
        {labelFor(node)}
      </text>
      {node.note && (
        <text class="note" x={32} y={middle + 13}>
          {noteFor(node, box.width)}
        </text>
      )}
    </>
  );
}
