/** Views of the list of jobs: the built-in ones, and those that somebody saved in this browser. */

export interface View {
  name: string;
  /** What stands in the address behind the question mark. */
  search: string;
}

const KEY = "job-views";

/** The views that everybody has. What operators look for is everybody's. */
export function builtIn(isOperator: boolean): View[] {
  const all = isOperator ? "&all=true" : "";
  return [
    { name: "Mine", search: "" },
    { name: "Waiting now", search: `state=waiting${all}` },
    { name: "Failed today", search: `state=failed&since=today${all}` },
    ...(isOperator ? [{ name: "Everything", search: "all=true" }] : []),
  ];
}

export function savedViews(): View[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isView) : [];
  } catch {
    return []; // somebody else's text
  }
}

const isView = (one: unknown): one is View =>
  typeof one === "object" && one !== null && "name" in one && "search" in one && typeof one.name === "string" && typeof one.search === "string";

/** Saves a view; one of the same name is replaced. The views there are now. */
export function saveView(view: View): View[] {
  return keep([...savedViews().filter((each) => each.name !== view.name), view]);
}

export function deleteView(name: string): View[] {
  return keep(savedViews().filter((each) => each.name !== name));
}

function keep(views: View[]): View[] {
  localStorage.setItem(KEY, JSON.stringify(views));
  return views;
}

/** Whether two addresses ask for the same, whatever the order. */
export function isSame(one: string, other: string): boolean {
  return sorted(one) === sorted(other);
}

function sorted(search: string): string {
  const pairs = new URLSearchParams(search);
  pairs.sort();
  return pairs.toString();
}
