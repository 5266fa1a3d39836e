/** What is not as usual with a unit: words with signs. */

import type { Unit } from "./kinds";

export function Marks({ of: { hold, drain, quarantine, broken } }: { of: Unit }) {
  const marks = [
    hold && { tone: "live", text: "‖ held", why: `by ${hold.by}: ${hold.reason}` },
    drain && { tone: "wait", text: drain.at_once ? "↓ recycled" : "↓ drained", why: `by ${drain.by}: ${drain.reason}` },
    quarantine && { tone: "bad", text: "! quarantined", why: quarantine.reason },
    broken && { tone: "bad", text: "! broken", why: broken },
  ].filter((mark) => mark !== null && mark !== "");
  if (marks.length === 0) return <span class="faint">–</span>;
  return (
    <>
      {marks.map(({ tone, text, why }) => (
        <span key={text} class={`mark-word ${tone}`} title={why}>
          {text}
        </span>
      ))}
    </>
  );
}
