/** How often a log is asked for new lines. */

const RUNNING = 1.5;
const SLOWER = 1.5;
const SLOWEST = 30;
/** Once it has settled a job's log gets few lines: of what is cleaned and given back. */
const AFTER = 12;

/**
 * In how many seconds to ask again; undefined for never. `quiet`: how many answers in a row brought nothing.
 *
 * While a job runs, a line is seen within two seconds of when it was written. Otherwise the decisions about it are few.
 */
export function pace(state: string | undefined, quiet: number, refused?: number): number | undefined {
  if (refused !== undefined && refused >= 400 && refused < 429) return undefined;
  if (refused !== undefined) return Math.min(2 ** quiet, SLOWEST);
  if (state === "running") return quiet === 0 ? 0.5 : RUNNING;
  if (state === "settled" && quiet >= AFTER) return undefined;
  return Math.min(2 * SLOWER ** quiet, SLOWEST);
}
