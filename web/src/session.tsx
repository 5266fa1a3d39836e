/** Who is signed in, for every part that shows or hides something by it, and whether that has ended meanwhile. */

import { createContext, type ComponentChildren } from "preact";
import { useCallback, useContext, useEffect, useState } from "preact/hooks";
import { navigate } from "wouter-preact/use-browser-location";

import { api, ask, Refused, type Schemas, whenSignedOut } from "./api/client";
import { keptPath } from "./own-path";

type Who = Schemas["WhoView"];

interface Session {
  /** The user; null if nobody is signed in, undefined until that is known. */
  who: Who | null | undefined;
  /** Why it could not be found out. */
  error: Refused | undefined;
  isOperator: boolean;
  /** Whether somebody was signed in here, and the service no longer takes the session. */
  hasEnded: boolean;
  /** Look again, after signing in or out. */
  renew: () => Promise<void>;
}

const NOBODY: Session = { who: undefined, error: undefined, isOperator: false, hasEnded: false, renew: async () => {} };

const Context = createContext<Session>(NOBODY);

export const useSession = (): Session => useContext(Context);

/** Finds out who is signed in, once. */
export function SessionProvider({ children }: { children: ComponentChildren }) {
  const [found, setFound] = useState<{ who?: Who | null; error?: Refused }>({});
  const [hasEnded, setEnded] = useState(false);
  const renew = useCallback(async () => {
    setFound(await look());
    setEnded(false);
  }, []);
  useEffect(() => void renew().then(goOn), [renew]);
  useEffect(() => whenSignedOut(() => setEnded(true)), []);
  useEnd(found.who?.token.expires, () => setEnded(true));
  const isOperator = found.who?.privileges.includes("admin") ?? false;
  const session = { who: found.who, error: found.error, isOperator, hasEnded: hasEnded && !!found.who, renew };
  return <Context.Provider value={session}>{children}</Context.Provider>;
}

/** After a sign-in that left the page, as GitHub's does, go to where one wanted to be. */
function goOn(): void {
  if (location.pathname !== "/") return;
  const path = keptPath();
  if (path) navigate(path, { replace: true });
}

const LONGEST_TIMER = 2 ** 31 - 1;

/** Calls `end` when a session's time is over: a page that asks nothing would not notice. */
function useEnd(expires: string | null | undefined, end: () => void): void {
  useEffect(() => {
    const milliseconds = expires ? Date.parse(expires) - Date.now() : LONGEST_TIMER;
    if (milliseconds >= LONGEST_TIMER) return undefined;
    const timer = setTimeout(end, Math.max(0, milliseconds));
    return () => clearTimeout(timer);
  }, [expires]);
}

async function look(): Promise<{ who?: Who | null; error?: Refused }> {
  try {
    return { who: await ask(api.GET("/v1/whoami")) };
  } catch (error) {
    if (error instanceof Refused && error.isSignedOut) return { who: null };
    if (error instanceof Refused) return { error };
    throw error;
  }
}
