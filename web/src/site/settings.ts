/** Settings of targets, resource types, factories and wells, as text. */

import type { Schemas } from "../api/client";

export type Entry = Pick<Schemas["Entry"], "name" | "settings">;

/** A value as one reads it. */
export function text(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The settings that are there, by name, without some. Empty ones say nothing. */
export function settingsOf({ settings }: Entry, without: readonly string[]): [string, string][] {
  return Object.entries(settings)
    .filter(([name, value]) => !without.includes(name) && !isEmpty(value))
    .map(([name, value]) => [name, text(value)]);
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
