/** States of jobs and units: a sign, a word and a colour, so that nobody depends on the colour. */

/** The colours of states. */
export type Tone = "good" | "bad" | "wait" | "live" | "off";

const SIGNS: Record<string, [string, Tone]> = {
  succeeded: ["✓", "good"],
  failed: ["✕", "bad"],
  errored: ["!", "bad"],
  cancelled: ["⊘", "off"],
  running: ["▶", "live"],
  acquiring: ["◔", "live"],
  queued: ["…", "wait"],
  waiting: ["…", "wait"],
  held: ["■", "live"],
  free: ["□", "good"],
  warm: ["▣", "good"],
  ready: ["▣", "good"],
  idle: ["▣", "good"],
  coming: ["◔", "live"],
  creating: ["◔", "live"],
  cleaning: ["◔", "wait"],
  quarantined: ["!", "bad"],
  quarantine: ["!", "bad"],
  away: ["!", "bad"],
  revoked: ["⊘", "off"],
  expired: ["⊘", "off"],
  disabled: ["⊘", "off"],
  created: ["✓", "good"],
  lost: ["!", "bad"],
  gone: ["⊘", "off"],
  withdrawn: ["⊘", "off"],
  good: ["✓", "good"],
  active: ["✓", "good"],
};

/** The sign and the colour of a state. */
export const signOf = (word: string): [string, Tone] => SIGNS[word] ?? ["•", "wait"];

/** A state, for example of a job: its outcome once it has settled. */
export function State({ of, outcome }: { of: string; outcome?: string | null | undefined }) {
  const word = outcome ?? of;
  const [sign, tone] = signOf(word);
  return (
    <span class={`state ${tone}`} data-state={word}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
