/** Places graphs off the page's own thread, so that a large one does not make the page stand still. */

import { arrange } from "./arrange";
import type { Shape } from "./model";

self.addEventListener("message", ({ data }: MessageEvent<Shape>) => {
  self.postMessage(arrange(data));
});
