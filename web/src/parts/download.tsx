/** A button that fetches a file by a URL that is signed for this one time. */

import { useState } from "preact/hooks";

import { type Answer, ask, Refused } from "../api/client";
import { say } from "./notices";

/** For how long the URL works: the browser uses it at once. */
export const SIGN = { expires_in: 300 };

interface Props {
  /** The file's name, for who does not see the row. */
  name: string;
  sign: () => Promise<Answer<{ url: string }>>;
}

/** The store answers with the file as an attachment, so the page stays where it is. */
export function Download({ name, sign }: Props) {
  const [isBusy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    try {
      location.assign((await ask(sign())).url);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      say(error.detail, "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" disabled={isBusy} aria-label={`Download ${name}`} onClick={() => void go()}>
      Download
    </button>
  );
}
