/**
 * Moving and zooming a picture by mouse, touch and keyboard.
 *
 * The picture moves at once; the page draws again what came into sight only every so many milliseconds, as a thousand
 * nodes take longer than a frame.
 */

import type { RefObject } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { moved, zoomed, type Camera, type Size } from "./camera";
import { listen } from "./pointers";

const REDRAW_MS = 120;

export interface Look {
  /** What was in sight when the page was drawn last. */
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

/** Which part of a picture an element shows. `group` is what is moved. */
export function useCamera(element: RefObject<SVGSVGElement>, group: RefObject<SVGGElement>): Look {
  const now = useRef<Camera>({ x: 0, y: 0, zoom: 1 });
  const [camera, setDrawn] = useState(now.current);
  const [frame, setFrame] = useState<Size>({ width: 0, height: 0 });
  const isChosen = useRef(false);
  const redraw = useRef<ReturnType<typeof setTimeout>>();
  const wasMoved = useRef<() => boolean>(() => false);

  const show = useCallback((shown: Camera) => {
    now.current = shown;
    group.current?.setAttribute("transform", transformOf(shown));
    redraw.current ??= setTimeout(() => {
      redraw.current = undefined;
      setDrawn(now.current);
    }, REDRAW_MS);
  }, []);
  const setCamera = useCallback((change: (before: Camera) => Camera) => {
    isChosen.current = true;
    show(change(now.current));
  }, []);
  const follow = useCallback((shown: Camera) => {
    if (!isChosen.current) show(shown);
  }, []);

  useEffect(() => {
    const svg = element.current;
    if (!svg) return undefined;
    const sized = new ResizeObserver(([entry]) => {
      if (entry) setFrame({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    sized.observe(svg);
    const listening = listen(svg, {
      move: (by) => setCamera((before) => moved(before, by)),
      zoom: (factor, at) => setCamera((before) => zoomed(before, factor, at)),
    });
    wasMoved.current = listening.wasMoved;
    return () => {
      sized.disconnect();
      listening.end();
      clearTimeout(redraw.current);
    };
  }, []);
  const zoom = (factor: number) => setCamera((before) => zoomed(before, factor, { x: frame.width / 2, y: frame.height / 2 }));
  return { camera, setCamera, follow, frame, zoom, wasMoved: () => wasMoved.current() };
}

const transformOf = ({ x, y, zoom }: Camera): string => `scale(${zoom}) translate(${-x} ${-y})`;
