/** Dark or light: as the system has it, unless somebody chose. */

export type Theme = "system" | "light" | "dark";

const KEY = "theme";

export function theme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme(chosen: Theme = theme()): void {
  localStorage.setItem(KEY, chosen);
  document.documentElement.dataset["theme"] = chosen;
}
