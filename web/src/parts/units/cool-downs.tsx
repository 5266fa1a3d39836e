/** When the factory or well of a unit is not asked for anything, and why. */

import { useWatch } from "../../api/watch";
import { UnitName } from "../names";
import { Shown } from "../page";
import { When } from "../time";
import { getMaker, type Unit, WORDS } from "./kinds";

/** Seconds. Beside the unit, which says what happens to it next. */
const ASKED_EVERY = 300;

export function CoolDowns({ of }: { of: Unit }) {
  const maker = useWatch(`maker ${of.kind} ${of.maker}`, (signal) => getMaker(of, signal), { every: ASKED_EVERY });
  const what = WORDS[of.kind].maker.toLowerCase();
  return (
    <section class="card">
      <h2>
        Cool-downs of its {what} {of.maker}
      </h2>
      <Shown of={maker}>
        {({ cooling }) =>
          cooling.length === 0 ? (
            <p class="faint">None: it is asked for whatever is needed.</p>
          ) : (
            <ul class="plain">
              {cooling.map((each) => (
                <li key={each.scope}>
                  <b class="wait">! {each.cause}</b> {each.scope || "everything"}: {each.summary} It began{" "}
                  <When at={each.since} /> and ends <When at={each.until} />; it failed {each.tried} times in a row.
                  {each.probe && (
                    <>
                      {" "}
                      <UnitName id={each.probe} /> probes now.
                    </>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </section>
  );
}
