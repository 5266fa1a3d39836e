/** How an owner stands by its budget: what is spent, of how much, and what happens once it is spent. */

import type { Schemas } from "../api/client";
import { When } from "../parts/time";
import { percent } from "../shares";
import { part } from "./money";

type Budget = Schemas["BudgetView"];

export function BudgetCard({ budget }: { budget: Budget }) {
  const share = part(budget.spent, budget.budget);
  return (
    <section class="card" aria-label={`The budget of ${budget.owner}`}>
      <p>
        <strong>{budget.owner}</strong> has spent{" "}
        <strong>
          {budget.spent} of {budget.budget} {budget.currency}
        </strong>{" "}
        ({percent(share)}) since <time dateTime={budget.since}>{budget.since}</time>. The next period begins{" "}
        <When at={budget.ends} />.
      </p>
      <meter class="budget" max={1} value={share} aria-label="Part of the budget that is spent">
        {percent(share)}
      </meter>
      {budget.is_spent ? (
        <p class="problem">The budget is spent: further jobs of {budget.owner} wait until the next period begins.</p>
      ) : (
        budget.is_near && <p class="problem">The budget is nearly spent. Once it is, further jobs of {budget.owner} wait.</p>
      )}
    </section>
  );
}
