/** Short notices of what was done or refused. A screen reader says them; they go after some seconds. */

import { useEffect, useState } from "preact/hooks";

type Tone = "good" | "bad";
interface Notice {
  id: number;
  text: string;
  tone: Tone;
}

const SECONDS = 6;
let count = 0;
let listener: ((notice: Notice) => void) | undefined;

export function say(text: string, tone: Tone = "good"): void {
  listener?.({ id: ++count, text, tone });
}

/** The place where notices appear: once, in the shell. */
export function Notices() {
  const [shown, setShown] = useState<Notice[]>([]);
  useEffect(() => {
    listener = (notice) => {
      setShown((before) => [...before, notice]);
      setTimeout(() => setShown((before) => before.filter((each) => each.id !== notice.id)), SECONDS * 1000);
    };
    return () => (listener = undefined);
  }, []);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.map((each) => (
        <p key={each.id} class={each.tone}>
          {each.text}
        </p>
      ))}
    </div>
  );
}
