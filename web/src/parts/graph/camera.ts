/** Which part of a picture is seen: moving and zooming, as numbers. Pure. */

import type { Box, Point } from "./model";

/** The picture's point (x, y) is at the frame's upper left corner; a unit of the picture is `zoom` pixels. */
export interface Camera {
  x: number;
  y: number;
  zoom: number;
}

export interface Size {
  width: number;
  height: number;
}

export const LEAST_ZOOM = 0.01;
export const MOST_ZOOM = 2.5;
const MARGIN = 16;

/** All of a picture in the middle of a frame, not larger than it is. */
export function fit(picture: Size, frame: Size): Camera {
  const wide = (frame.width - 2 * MARGIN) / Math.max(picture.width, 1);
  const high = (frame.height - 2 * MARGIN) / Math.max(picture.height, 1);
  const zoom = clamp(Math.min(wide, high, 1));
  return { x: (picture.width - frame.width / zoom) / 2, y: (picture.height - frame.height / zoom) / 2, zoom };
}

/** All of a picture if it can be read then; else its beginning, the leftmost box, at a size that can be read. */
export function begin(picture: Size & { boxes: Readonly<Record<string, Box>> }, frame: Size, readable = 0.7): Camera {
  const whole = fit(picture, frame);
  if (whole.zoom >= readable) return whole;
  const edge = MARGIN / readable;
  const high = frame.height / readable;
  const first = Object.values(picture.boxes).reduce((best, box) => (box.x < best.x ? box : best));
  const least = Math.min(-edge, (picture.height - high) / 2); // lower than that there is nothing more to see
  const most = Math.max(least, picture.height + edge - high);
  return { x: -edge, y: Math.min(Math.max(middle(first).y - high / 2, least), most), zoom: readable };
}

/** Nearer or farther by a factor, with a point of the frame staying where it is. */
export function zoomed(camera: Camera, factor: number, at: Point): Camera {
  const zoom = clamp(camera.zoom * factor);
  return { x: camera.x + at.x / camera.zoom - at.x / zoom, y: camera.y + at.y / camera.zoom - at.y / zoom, zoom };
}

/** Moved by pixels of the frame. */
export function moved(camera: Camera, by: Point): Camera {
  return { ...camera, x: camera.x - by.x / camera.zoom, y: camera.y - by.y / camera.zoom };
}

/** Moved no more than is needed for a box to be seen. */
export function showing(camera: Camera, box: Box, frame: Size): Camera {
  const [wide, high, edge] = [frame.width / camera.zoom, frame.height / camera.zoom, MARGIN / camera.zoom];
  return {
    ...camera,
    x: Math.max(Math.min(camera.x, box.x - edge), box.x + box.width + edge - wide),
    y: Math.max(Math.min(camera.y, box.y - edge), box.y + box.height + edge - high),
  };
}

/** Whether something of a box is in the frame, or near it. */
export function isSeen(camera: Camera, box: Box, frame: Size): boolean {
  const more = Math.max(frame.width, frame.height) / 3 / camera.zoom; // the page is drawn again a little later than it moves
  return (
    box.x + box.width > camera.x - more &&
    box.y + box.height > camera.y - more &&
    box.x < camera.x + frame.width / camera.zoom + more &&
    box.y < camera.y + frame.height / camera.zoom + more
  );
}

/** The node that stands next in a direction: -1, 0 or 1 along each axis. */
export function nextTo(from: string, boxes: Readonly<Record<string, Box>>, direction: Point): string | undefined {
  const here = boxes[from];
  if (!here) return undefined;
  let [best, least] = [undefined as string | undefined, Infinity];
  for (const [id, box] of Object.entries(boxes)) {
    const [x, y] = [middle(box).x - middle(here).x, middle(box).y - middle(here).y];
    const along = x * direction.x + y * direction.y;
    const aside = Math.abs(x * direction.y) + Math.abs(y * direction.x);
    const far = along + 3 * aside;
    if (id !== from && along > 1 && far < least) [best, least] = [id, far];
  }
  return best;
}

export const middle = (box: Box): Point => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });

const clamp = (zoom: number): number => Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, zoom));
