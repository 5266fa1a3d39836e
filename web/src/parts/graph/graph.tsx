/** A graph, drawn: each node is a link. model.ts says how to use it. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";

import { begin, fit, isSeen, nextTo, showing } from "./camera";
import { drawn, labelFor, lineKey, noteFor, type Box, type GraphData, type GraphEdge, type GraphNode, type Placed, type Point } from "./model";
import { useCamera, type Look } from "./use-camera";
import { useLayout } from "./use-layout";
import "../../style/graph.css";

interface Props {
  /** What the picture shows, in a few words. */
  label: string;
  graph: GraphData;
  /** What a plain click on a node, or Enter, does instead of going to its page. */
  onOpen?: (id: string) => void;
  /** The node that is pointed out, for example the one that was opened. */
  chosen?: string | undefined;
}

/** Pixels: the picture is as high as the graph and what is around it, and no higher than most of the window. */
const LEAST_HEIGHT = 200;
const AROUND = 48;

/** Below this zoom texts could not be read: nodes are blocks of their colour with their sign. */
const TEXT_ZOOM = 0.42;

export function Graph({ label, graph, onOpen, chosen }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const look = useCamera(svg);
  const { placed, isBusy } = useLayout(graph);
  useBeginning(look, placed);
  useChosen(look, placed, chosen);
  return (
    <figure class="graph" aria-label={label} aria-busy={isBusy}>
      <Buttons look={look} placed={placed} />
      {isBusy && (
        <p class="graph-busy" role="status">
          Arranging {graph.nodes.length} nodes…
        </p>
      )}
      <svg
        ref={svg}
        role="group"
        style={placed && { height: `min(${Math.max(LEAST_HEIGHT, placed.height + AROUND)}px, 70vh)` }}
         aria-label={`${label}. Arrow keys go from node to node, + and - zoom, 0 shows all.`}
      >
        {placed && <Picture graph={graph} placed={placed} look={look} onOpen={onOpen} chosen={chosen} />}
      </svg>
    </figure>
  );
}

/** Until somebody moves it, the picture is shown from its beginning, also when it or the page changes its size. */
function useBeginning({ frame, follow }: Look, placed: Placed | undefined): void {
  useEffect(() => {
    if (placed && frame.width > 0) follow(begin(placed, frame));
  }, [placed, frame.width, frame.height]);
}

/** What was chosen stays in sight, also where something beside the picture makes it narrower. */
function useChosen({ frame, setCamera }: Look, placed: Placed | undefined, chosen: string | undefined): void {
  const box = chosen === undefined ? undefined : placed?.boxes[chosen];
  useEffect(() => {
    if (box && frame.width > 0) setCamera((before) => showing(before, box, frame));
  }, [chosen, box !== undefined, frame.width]);
}

function Buttons({ look, placed }: { look: Look; placed: Placed | undefined }) {
  return (
    <div class="graph-buttons" role="group" aria-label="Zoom">
      <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => look.zoom(1.4)}>
        +
      </button>
      <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => look.zoom(1 / 1.4)}>
        −
      </button>
      <button type="button" title="Show all (0)" onClick={() => placed && look.setCamera(() => fit(placed, look.frame))}>
        All
      </button>
    </div>
  );
}

interface PictureProps {
  graph: GraphData;
  placed: Placed;
  look: Look;
  onOpen: ((id: string) => void) | undefined;
  chosen: string | undefined;
}

const DIRECTIONS: Record<string, Point> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

/** Nodes and edges that are in sight, and the keys. One node can be reached by Tab; the arrow keys go on from there. */
function Picture({ graph, placed, look, onOpen, chosen }: PictureProps) {
  const { camera, frame, setCamera } = look;
  const [, go] = useLocation();
  const [focused, setFocused] = useState<string>();
  const group = useRef<SVGGElement>(null);
  const edges = useMemo(() => drawn(graph), [graph]);
  const stop = focused && placed.boxes[focused] ? focused : (chosen ?? graph.nodes[0]?.id);

  const goTo = (id: string) => {
    setFocused(id);
    setCamera((before) => showing(before, placed.boxes[id] as Box, frame));
    requestAnimationFrame(() => group.current?.querySelector<SVGAElement>(`[data-node="${CSS.escape(id)}"]`)?.focus());
  };
  const press = (event: KeyboardEvent) => {
    const direction = DIRECTIONS[event.key];
    const next = direction && stop && nextTo(stop, placed.boxes, direction);
    if (next) goTo(next);
    else if (event.key === "+" || event.key === "=") look.zoom(1.4);
    else if (event.key === "-") look.zoom(1 / 1.4);
    else if (event.key === "0") setCamera(() => fit(placed, frame));
    if (direction || "+=-0".includes(event.key)) event.preventDefault();
  };
  const click = (event: MouseEvent, node: GraphNode) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab, as with any link
    event.preventDefault();
    if (look.wasMoved() && event.detail > 0) return;
    if (onOpen) onOpen(node.id);
    else go(node.href);
  };

  const seen = graph.nodes.filter(({ id }) => placed.boxes[id] && (id === stop || isSeen(camera, placed.boxes[id], frame)));
  return (
    <g
      ref={group}
      class={camera.zoom < TEXT_ZOOM ? "far" : "near"}
      transform={`scale(${camera.zoom}) translate(${-camera.x} ${-camera.y})`}
      onKeyDown={press}
    >
      {edges.map((edge) => (
        <Edge key={`${lineKey(edge)} ${edge.kind}`} edge={edge} line={placed.lines[lineKey(edge)]} look={look} />
      ))}
      {seen.map((node) => (
        <Node
          key={node.id}
          node={node}
          box={placed.boxes[node.id] as Box}
          isStop={node.id === stop}
          isChosen={node.id === chosen}
          isNear={camera.zoom >= TEXT_ZOOM}
          onFocus={() => setFocused(node.id)}
          onClick={(event) => click(event, node)}
        />
      ))}
    </g>
  );
}

function Edge({ edge, line, look }: { edge: GraphEdge; line: Point[] | undefined; look: Look }) {
  if (!line || line.length < 2 || !isSeen(look.camera, around(line), look.frame)) return null;
  return <path class={`edge ${edge.kind ?? "plain"} ${edge.isMarked ? "on-path" : ""}`} d={curve(line)} aria-hidden="true" />;
}

function around(line: Point[]): Box {
  const [xs, ys] = [line.map(({ x }) => x), line.map(({ y }) => y)];
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

/** A soft line through some points, which leaves and arrives sideways. */
function curve(line: Point[]): string {
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

interface NodeProps {
  node: GraphNode;
  box: Box;
  isStop: boolean;
  isChosen: boolean;
  isNear: boolean;
  onFocus: () => void;
  onClick: (event: MouseEvent) => void;
}

function Node({ node, box, isStop, isChosen, isNear, onFocus, onClick }: NodeProps) {
  const classes = [
    "node",
    node.tone,
    node.shape ?? "job",
    node.isMarked && "on-path",
    node.isFaded && "faded",
    isChosen && "chosen",
  ];
  return (
    <a
      class={classes.filter(Boolean).join(" ")}
      href={node.href}
      data-node={node.id}
      aria-label={node.title}
      tabIndex={isStop ? 0 : -1}
      draggable={false}
      onFocus={onFocus}
      onClick={onClick}
    >
      <g transform={`translate(${round(box.x)} ${round(box.y)})`}>
        <title>{node.title}</title>
        {node.shape === "pile" && <rect class="under" x={5} y={5} width={box.width} height={box.height} rx={6} />}
        <rect class="box" width={box.width} height={box.height} rx={node.shape === "pool" ? box.height / 2 : 6} />
        {isNear ? <Texts node={node} box={box} /> : <Sign node={node} box={box} />}
      </g>
    </a>
  );
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

const Sign = ({ node, box }: { node: GraphNode; box: Box }) => (
  <text class="sign large" x={box.width / 2} y={box.height / 2 + 11}>
    {node.sign}
  </text>
);
