/** Moving and zooming a picture by mouse, touch and keyboard. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

import { moved, zoomed, type Camera, type Size } from "./camera";
import type { Point } from "./model";

/** Pixels that a pointer moves before a press is a move and not a click. */
const SLACK = 5;
const STEP = 1.25;

export interface Look {
  camera: Camera;
  /** Somebody looks at something: from then on `follow` does nothing. */
  setCamera: (change: (before: Camera) => Camera) => void;
  /** What is shown until somebody chooses. */
  follow: (camera: Camera) => void;
  frame: Size;
  /** Nearer or farther, around the middle. */
  zoom: (factor: number) => void;
  /** Whether the pointer has just moved the picture: then the click that follows is none. */
  wasMoved: () => boolean;
}

/** Which part of a picture an element shows. One finger scrolls the page and moves the picture sideways; two move and zoom. */
export function useCamera(element: RefObject<SVGSVGElement>): Look {
  const [camera, setState] = useState<Camera>({ x: 0, y: 0, zoom: 1 });
  const isChosen = useRef(false);
  const setCamera = useCallback((change: (before: Camera) => Camera) => {
    isChosen.current = true;
    setState(change);
  }, []);
  const follow = useCallback((shown: Camera) => isChosen.current || setState(shown), []);
  const [frame, setFrame] = useState<Size>({ width: 0, height: 0 });
  const pressed = useRef(new Map<number, Point>());
  const way = useRef(0);

  useEffect(() => {
    const svg = element.current;
    if (!svg) return undefined;
    const sized = new ResizeObserver(([entry]) => {
      if (entry) setFrame({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    sized.observe(svg);
    const gone = listen(svg, pressed.current, way, setCamera);
    return () => {
      sized.disconnect();
      gone();
    };
  }, []);

  const zoom = (factor: number) => setCamera((before) => zoomed(before, factor, { x: frame.width / 2, y: frame.height / 2 }));
  return { camera, setCamera, follow, frame, zoom, wasMoved: () => way.current > SLACK };
}

type Change = (change: (before: Camera) => Camera) => void;

function listen(svg: SVGSVGElement, pressed: Map<number, Point>, way: { current: number }, change: Change): () => void {
  const at = (event: MouseEvent): Point => {
    const frame = svg.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    if (pressed.size === 0) way.current = 0;
    pressed.set(event.pointerId, at(event));
  };
  const move = (event: PointerEvent) => {
    const before = pressed.get(event.pointerId);
    if (!before) return;
    const now = at(event);
    const other = [...pressed].find(([id]) => id !== event.pointerId)?.[1];
    pressed.set(event.pointerId, now);
    way.current += distance(before, now);
    if (way.current <= SLACK) return;
    if (!svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
    const by = { x: now.x - before.x, y: now.y - before.y };
    if (!other) change((camera) => moved(camera, by));
    else {
      const factor = distance(now, other) / Math.max(distance(before, other), 1);
      const half = { x: by.x / 2, y: by.y / 2 };
      change((camera) => zoomed(moved(camera, half), factor, { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 }));
    }
  };
  const up = (event: PointerEvent) => pressed.delete(event.pointerId);
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const factor = STEP ** (-event.deltaY / (event.deltaMode ? 3 : 100));
    change((camera) => zoomed(camera, factor, at(event)));
  };
  svg.addEventListener("pointerdown", down);
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerup", up);
  svg.addEventListener("pointercancel", up);
  svg.addEventListener("wheel", wheel, { passive: false });
  return () => {
    svg.removeEventListener("pointerdown", down);
    svg.removeEventListener("pointermove", move);
    svg.removeEventListener("pointerup", up);
    svg.removeEventListener("pointercancel", up);
    svg.removeEventListener("wheel", wheel);
  };
}

const distance = (one: Point, other: Point): number => Math.hypot(one.x - other.x, one.y - other.y);
