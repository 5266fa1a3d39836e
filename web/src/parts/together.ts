/** One action for several things, a few at a time. */

import { type Answer, ask, Refused } from "../api/client";

const AT_ONCE = 4;

/** Does it for each id, in their order if one at a time. Throws Refused if some were refused, and says how many were not, and why the first was. */
export async function together<T>(
  ids: readonly string[],
  act: (id: string) => Promise<Answer<T>>,
  done: string,
  atOnce = AT_ONCE,
): Promise<void> {
  const open = [...ids];
  const refused: [string, Refused][] = [];
  const work = async () => {
    for (let id = open.shift(); id !== undefined; id = open.shift())
      try {
        await ask(act(id));
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        refused.push([id, error]);
      }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const [first] = refused;
  if (!first) return;
  const [id, error] = first;
  const others = refused.length > 1 ? ` And ${refused.length - 1} more.` : "";
  throw new Refused(error.status, error.code, `${ids.length - refused.length} of ${ids.length} ${done}. ${id}: ${error.detail}${others}`);
}
