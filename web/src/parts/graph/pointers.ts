/** What mouse, fingers and wheel ask for: one finger scrolls the page and moves the picture sideways; two move and zoom. */

import type { Point } from "./model";

/** Pixels that a pointer moves before a press is a move and not a click. */
const SLACK = 5;
const WHEEL_STEP = 1.25;

interface Asked {
  move: (by: Point) => void;
  zoom: (factor: number, at: Point) => void;
}

/** Listens to an element. `wasMoved`: whether the last press moved the picture. */
export function listen(svg: SVGSVGElement, asked: Asked): { end: () => void; wasMoved: () => boolean } {
  const pressed = new Map<number, Point>();
  let way = 0;
  const at = (event: MouseEvent): Point => {
    const frame = svg.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    if (pressed.size === 0) way = 0;
    pressed.set(event.pointerId, at(event));
  };
  const move = (event: PointerEvent) => {
    const before = pressed.get(event.pointerId);
    if (!before) return;
    const now = at(event);
    const other = [...pressed].find(([id]) => id !== event.pointerId)?.[1];
    pressed.set(event.pointerId, now);
    way += distance(before, now);
    if (way <= SLACK) return;
    if (!svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
    const by = { x: now.x - before.x, y: now.y - before.y };
    if (!other) asked.move(by);
    else {
      asked.move({ x: by.x / 2, y: by.y / 2 });
      asked.zoom(distance(now, other) / Math.max(distance(before, other), 1), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
    }
  };
  const up = (event: PointerEvent) => pressed.delete(event.pointerId);
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    asked.zoom(WHEEL_STEP ** (-event.deltaY / (event.deltaMode ? 3 : 100)), at(event));
  };
  const stop = new AbortController();
  const { signal } = stop;
  svg.addEventListener("pointerdown", down, { signal });
  svg.addEventListener("pointermove", move, { signal });
  svg.addEventListener("pointerup", up, { signal });
  svg.addEventListener("pointercancel", up, { signal });
  svg.addEventListener("wheel", wheel, { signal, passive: false });
  return { end: () => stop.abort(), wasMoved: () => way > SLACK };
}

const distance = (one: Point, other: Point): number => Math.hypot(one.x - other.x, one.y - other.y);
