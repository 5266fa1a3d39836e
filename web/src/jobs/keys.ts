/** Keys of a list: j and k, or the arrows within the list, go from row to row; x selects; / goes to the filters. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

const LINKS = '[data-title="Job"] a';

/** Listens while the list is shown. Enter follows the link that has the focus, as everywhere. */
export function useListKeys(list: RefObject<HTMLElement>, more: (() => void) | undefined): void {
  const latest = useRef(more);
  latest.current = more;
  // Before anybody sees the list, so that no key is lost.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const isInside = list.current?.contains(event.target as Node) ?? false;
      const step = stepOf(event.key, isInside);
      if (step !== 0) go(list.current, step, latest.current);
      else if (event.key === "x" && isInside) boxOf(event.target as Element)?.click();
      else if (event.key === "/") document.querySelector<HTMLInputElement>('[role="search"] input')?.focus();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

function stepOf(key: string, isInside: boolean): number {
  if (key === "j" || (isInside && key === "ArrowDown")) return 1;
  return key === "k" || (isInside && key === "ArrowUp") ? -1 : 0;
}

function go(list: HTMLElement | null, step: number, more: (() => void) | undefined): void {
  const links = [...(list?.querySelectorAll<HTMLElement>(LINKS) ?? [])];
  const row = document.activeElement?.closest("tr");
  const here = links.findIndex((each) => each.closest("tr") === row);
  const next = links[here === -1 ? (step > 0 ? 0 : links.length - 1) : here + step];
  if (next) next.focus();
  else if (step > 0) more?.();
}

const boxOf = (element: Element): HTMLElement | null | undefined => element.closest("tr")?.querySelector<HTMLElement>("input[type=checkbox]");

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest("dialog")) return true;
  return target.matches("textarea, select, [contenteditable], input:not([type=checkbox])");
}
