/** How many jobs there are of each state. */

import { signOf } from "../parts/state";
import { countsOf, type Job } from "./groups";

export function Counts({ of }: { of: readonly Pick<Job, "state" | "outcome">[] }) {
  return (
    <span class="counts">
      {countsOf(of).map(([word, count]) => {
        const [sign, tone] = signOf(word);
        return (
          <span key={word} class={tone}>
            <span aria-hidden="true">{sign}</span> {count} {word}
          </span>
        );
      })}
    </span>
  );
}
