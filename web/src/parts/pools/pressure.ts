/** How much a pool is asked for, and the parts that it is made of: numbers only. */

import type { Schemas } from "../../api/client";

type Pool = Schemas["PoolView"];

/** Pools that somebody waits for come first: those with the most who wait for each slot. Then those that are most in use. */
export function byPressure(left: Pool, right: Pool): number {
  return queued(right) - queued(left) || used(right) - used(left) || left.pool.localeCompare(right.pool);
}

const queued = ({ waiting, limit }: Pool): number => waiting / Math.max(limit, 1);
const used = ({ held, limit }: Pool): number => held / Math.max(limit, 1);

/** A part of a pool, and how much of it that is, from 0 to 1. */
export interface Part {
  name: "held" | "warm" | "free" | "away";
  count: number;
  share: number;
}

/** What a pool's slots are in, in the order of the bar. Free slots with a unit are shown apart from those without. */
export function partsOf({ held, free, limit, warm = 0, away = 0 }: Pool): Part[] {
  const counts = { held, warm, free: Math.max(free - warm, 0), away };
  const all = Math.max(limit, held + free + away, 1);
  return (Object.entries(counts) as [Part["name"], number][])
    .filter(([, count]) => count > 0)
    .map(([name, count]) => ({ name, count, share: count / all }));
}

/** A pool's name without its sort: bench of resource/bench. */
export const nameOf = (pool: string): string => pool.slice(pool.indexOf("/") + 1);

/** A pool's sort: resource of resource/bench. */
export const sortOf = (pool: string): string => pool.slice(0, pool.indexOf("/"));

/**
 * Slots by name, with numbers as numbers: who looks for bench-3 finds it in its place. Slots that have only numbers are
 * alike: of them, those in use come first.
 */
export function inOrder({ slots, kind }: Pool): Schemas["SlotView"][] {
  const rank = (slot: Schemas["SlotView"]) => (kind === "named" ? 0 : RANKS.indexOf(slot.state));
  if (!slots) return [];
  return [...slots].sort((left, right) => rank(left) - rank(right) || NATURAL.compare(left.slot, right.slot));
}

const RANKS = ["held", "away", "idle", "coming", "warm", "free", "withdrawn"];
const NATURAL = new Intl.Collator("en", { numeric: true });
