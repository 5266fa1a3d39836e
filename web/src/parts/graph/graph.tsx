/** A graph, drawn: each node is a link. model.ts says how to use it. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";

import { begin, fit, isSeen, nextTo, showing } from "./camera";
import { linesOf } from "./lines";
import type { Box, GraphData, Placed, Point } from "./model";
import { Node, type Detail } from "./node";
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

const ZOOM_STEP = 1.4;

export function Graph({ label, graph, onOpen, chosen }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const group = useRef<SVGGElement>(null);
  const look = useCamera(svg, group);
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
        <g ref={group}>{placed && <Picture graph={graph} placed={placed} look={look} group={group} onOpen={onOpen} chosen={chosen} />}</g>
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
      <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => look.zoom(ZOOM_STEP)}>
        +
      </button>
      <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => look.zoom(1 / ZOOM_STEP)}>
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
  group: RefObject<SVGGElement>;
  onOpen: ((id: string) => void) | undefined;
  chosen: string | undefined;
}

const DIRECTIONS: Record<string, Point> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

/** Below these zooms texts, or signs, could not be read. */
const detailAt = (zoom: number): Detail => (zoom >= 0.42 ? "near" : zoom >= 0.14 ? "far" : "tiny");

/** Edges, the nodes that are in sight, and the keys. One node can be reached by Tab; the arrow keys go on from there. */
function Picture({ graph, placed, look, group, onOpen, chosen }: PictureProps) {
  const { camera, frame, setCamera } = look;
  const [, go] = useLocation();
  const [focused, setFocused] = useState<string>();
  const wanted = useRef<string>();
  const stop = [focused, chosen].find((id) => id && placed.boxes[id]) ?? graph.nodes[0]?.id;
  useLayoutEffect(() => {
    const next = wanted.current;
    wanted.current = undefined;
    if (next) nodeIn(group, next)?.focus({ preventScroll: true });
  }, [focused]);

  const goTo = (id: string) => {
    wanted.current = id;
    setFocused(id);
    setCamera((before) => showing(before, placed.boxes[id] as Box, frame));
  };
  const press = (event: KeyboardEvent) => {
    const direction = DIRECTIONS[event.key];
    const next = direction && stop && nextTo(stop, placed.boxes, direction);
    if (next) goTo(next);
    else if (event.key === "+" || event.key === "=") look.zoom(ZOOM_STEP);
    else if (event.key === "-") look.zoom(1 / ZOOM_STEP);
    else if (event.key === "0") setCamera(() => fit(placed, frame));
    if (direction || "+=-0".includes(event.key)) event.preventDefault();
  };
  const click = (event: MouseEvent) => {
    const node = graph.nodes.find(({ id }) => id === idAt(event.target));
    if (!node || event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab, as with any link
    event.preventDefault();
    if (look.wasMoved() && event.detail > 0) return;
    if (onOpen) onOpen(node.id);
    else go(node.href);
  };

  const detail = detailAt(camera.zoom);
  const lines = useMemo(() => linesOf(graph, placed), [graph, placed]);
  const seen = graph.nodes.filter(({ id }) => placed.boxes[id] && (id === stop || isSeen(camera, placed.boxes[id], frame)));
  return (
    <g class={detail} onKeyDown={press} onClick={click} onFocusIn={(event) => setFocused(idAt(event.target))}>
      {lines.map((each) => (
        <path key={each.look} class={`edge ${each.look}`} d={each.path} aria-hidden="true" />
      ))}
      {seen.map((node) => (
        <Node key={node.id} node={node} box={placed.boxes[node.id] as Box} detail={detail} isStop={node.id === stop} isChosen={node.id === chosen} />
      ))}
    </g>
  );
}

const idAt = (target: EventTarget | null): string | undefined => {
  const node = target instanceof Element ? target.closest("[data-node]") : null;
  return node?.getAttribute("data-node") ?? undefined;
};

const nodeIn = (group: RefObject<SVGGElement>, id: string): SVGAElement | null | undefined =>
  group.current?.querySelector<SVGAElement>(`[data-node="${CSS.escape(id)}"]`);
