/** How often a log is asked for new lines. */

/** Lines of a running job come in lumps, so after a few answers without one there may be more soon. */
const BUSY = 0.3;
const BUSY_ANSWERS = 3;
const RUNNING = 1.2;
/** What comes from a cache may be a second old. To ask that costs next to nothing. */
const RUNNING_CACHED = 0.5;
const SLOWER = 1.5;
const SLOWEST = 30;
/** Once it has settled a job's log gets few lines: of what is cleaned and given back. */
const AFTER = 8;

/**
 * In how many seconds to ask again; undefined for never. `quiet`: how many answers in a row brought nothing.
 *
 * While a job runs, a line is seen within two seconds of when it was written. Otherwise the decisions about it are few.
 */
export function pace(state: string | undefined, quiet: number, refused?: number, isCached = false): number | undefined {
  if (refused !== undefined && refused >= 400 && refused < 429) return undefined;
  if (refused !== undefined) return Math.min(2 ** quiet, SLOWEST);
  if (state === "running") return quiet < BUSY_ANSWERS ? BUSY : isCached ? RUNNING_CACHED : RUNNING;
  if (state === "settled" && quiet >= AFTER) return undefined;
  return Math.min(2 * SLOWER ** quiet, SLOWEST);
}
