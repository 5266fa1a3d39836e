/** Running jobs of a set again, one after the other, each with the new jobs that it waits for. */

import { api, ask, Refused } from "../api/client";
import type { Step } from "./rerun";

/** With it the service makes one job of each, however often it is asked: also if an answer was lost, or a page is old. */
const KEY = { "Idempotency-Key": "rerun of a set" };

/** Names that a sentence lists. */
const MOST_NAMES = 5;

/**
 * Submits the steps once more. `tell` hears how many were. Throws Refused for the first that is refused, which says what
 * was submitted before it.
 */
export async function rerun(steps: readonly Step[], tell: (done: number) => void): Promise<void> {
  const made = new Map<string, string>();
  for (const [done, step] of steps.entries()) {
    tell(done);
    try {
      made.set(step.member.id, await once(step, made));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      throw new Refused(error.status, error.code, sentence(steps, done, error));
    }
  }
}

async function once({ member, instead }: Step, made: ReadonlyMap<string, string>): Promise<string> {
  const dependencies = Object.fromEntries(instead.map(({ name, job, isNew }) => [name, isNew ? (made.get(job) as string) : job]));
  const params = { path: { job: member.id }, header: KEY };
  const { id } = await ask(api.POST("/v1/jobs/{job}/retry", { params, body: { dependencies } }));
  return id;
}

function sentence(steps: readonly Step[], done: number, { detail }: Refused): string {
  const names = steps.slice(0, done).map(({ member }) => member.name);
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : "";
  const listed = done > 0 ? ` (${names.slice(0, MOST_NAMES).join(", ")}${more})` : "";
  const refused = `“${steps[done]?.member.name}” was refused: ${detail}`;
  return `${done} of ${steps.length} were submitted once more${listed}. ${refused}. Press again to go on: none is submitted twice.`;
}
