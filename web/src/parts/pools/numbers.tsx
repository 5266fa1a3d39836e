/** What a pool has, as a bar and in words. */

import type { Schemas } from "../../api/client";
import { When } from "../time";
import { partsOf } from "./pressure";
import "../../style/pools.css";

type Pool = Schemas["PoolView"];

/** A bar of what is held, warm, free and away. It is for the eye: the numbers beside it say the same. */
export function Bar({ of }: { of: Pool }) {
  return (
    <div class="pool-bar" aria-hidden="true">
      {partsOf(of).map(({ name, share }) => (
        <span key={name} class={name} style={{ width: `${share * 100}%` }} />
      ))}
    </div>
  );
}

/** 1 of 2 held, 1 free, 3 wait. */
export function Numbers({ of: { held, limit, free, waiting, warm = 0, coming = 0, away = 0 } }: { of: Pool }) {
  const ready = warm - coming;
  return (
    <ul class="pool-numbers">
      <li>
        <b>{held}</b> of {limit} held
      </li>
      <li>
        <b>{free}</b> free{warm > 0 && ` (${[ready && `${ready} warm`, coming && `${coming} coming`].filter(Boolean).join(", ")})`}
      </li>
      <li class={waiting ? "wait" : ""}>
        <b>{waiting}</b> {waiting === 1 ? "waits" : "wait"}
      </li>
      {away > 0 && (
        <li class="bad">
          <b>{away}</b> away
        </li>
      )}
    </ul>
  );
}

/** What a stop is of, in words: `site`, `factory/ec2`. */
export const wholeOf = (scope: string): string => (scope === "site" ? "the whole site" : scope.replace("/", " "));

/** Who paused a pool or set its limit, when, and why. */
export const ByHand = ({ of }: { of: Schemas["ByHandView"] }) => (
  <>
    {of.scope && `with ${wholeOf(of.scope)} `}by {of.by}, <When at={of.at} />
    {of.reason && `: ${of.reason}`}
  </>
);

/** What is out of order with a pool: it is paused, its limit was set by hand, or no warm units are made. */
export function Troubles({ of: { paused, pause, limit, resized, setback } }: { of: Pool }) {
  return (
    <>
      {paused && (
        <p class="pool-trouble">
          <b class="bad">‖ Paused:</b> nothing is granted until an operator resumes it.
          {pause && (
            <>
              {" "}
              Paused <ByHand of={pause} />
            </>
          )}
        </p>
      )}
      {resized && (
        <p class="pool-trouble">
          Limit of {limit} set <ByHand of={resized} />
        </p>
      )}
      {setback && (
        <p class="pool-trouble">
          <b class="wait">! No warm units:</b> {setback.count} came to nothing, the last as {setback.why}; tried again{" "}
          <When at={setback.until} />.
        </p>
      )}
    </>
  );
}
