/** The rows of a long list that are in sight: TanStack's virtual list for Preact. */

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualizerOptions } from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";

type Options = Pick<VirtualizerOptions<HTMLDivElement, HTMLDivElement>, "count" | "estimateSize" | "getScrollElement" | "getItemKey" | "overscan" | "measureElement">;
export type Virtual = Virtualizer<HTMLDivElement, HTMLDivElement>;

export function useVirtual(options: Options): Virtual {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const all = { observeElementRect, observeElementOffset, scrollToFn: elementScroll, onChange: () => draw(0), ...options };
  const [virtual] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(all));
  virtual.setOptions(all);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}

/** Higher elements are cut by browsers: at 33 million pixels by Chromium, at 18 million by Firefox. */
const HIGHEST = [30_000_000, 15_000_000];

/** How many pixels high a list may be in this browser. */
export function highest(): number {
  const probe = document.createElement("div");
  probe.style.cssText = `position:absolute;visibility:hidden;width:1px;height:${HIGHEST[0]}px`;
  document.body.append(probe);
  const height = probe.getBoundingClientRect().height;
  probe.remove();
  return (height >= (HIGHEST[0] as number) ? HIGHEST[0] : HIGHEST[1]) as number;
}
