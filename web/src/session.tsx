/** Who is signed in, for every part that shows or hides something by it. */

import { createContext, type ComponentChildren } from "preact";
import { useCallback, useContext, useEffect, useState } from "preact/hooks";

import { api, ask, Refused, type Schemas } from "./api/client";

type Who = Schemas["WhoView"];

interface Session {
  /** The user; null if nobody is signed in, undefined until that is known. */
  who: Who | null | undefined;
  /** Why it could not be found out. */
  error: Refused | undefined;
  isOperator: boolean;
  /** Look again, after signing in or out. */
  renew: () => Promise<void>;
}

const Context = createContext<Session>({ who: undefined, error: undefined, isOperator: false, renew: async () => {} });

export const useSession = (): Session => useContext(Context);

/** Finds out who is signed in, once. */
export function SessionProvider({ children }: { children: ComponentChildren }) {
  const [found, setFound] = useState<{ who?: Who | null; error?: Refused }>({});
  const renew = useCallback(async () => setFound(await look()), []);
  useEffect(() => void renew(), [renew]);
  const isOperator = found.who?.privileges.includes("admin") ?? false;
  return <Context.Provider value={{ who: found.who, error: found.error, isOperator, renew }}>{children}</Context.Provider>;
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
