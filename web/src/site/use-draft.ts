/** A configuration that is being written: the text, what applying it would do, and applying it. */

import { useEffect, useRef, useState } from "preact/hooks";

import { api, ask, Refused, type Schemas } from "../api/client";
import type { Changes } from "./plan";

type Site = Schemas["SiteView"];

/** What a text would change, or what is wrong with it. */
export interface Checked {
  text: string;
  plan?: Changes;
  error?: Refused;
}

export interface Draft {
  text: string;
  /** Whether it differs from the configuration in force. */
  isChanged: boolean;
  /** Whether another configuration is in force than the one that the text came from. */
  isOld: boolean;
  write: (text: string) => void;
  /** Take the configuration in force. */
  reset: () => void;
  checked: Checked | undefined;
  check: () => Promise<void>;
  apply: () => Promise<void>;
  /** What was applied last. */
  applied: Changes | undefined;
}

/** What was written stays while one looks at other pages. It is kept nowhere else: it may contain secrets. */
let kept: { text: string; base: string } | undefined;

const CHANGED_MEANWHILE = 412;
const PATH = "site.toml";

export function useDraft(site: Site, renew: () => void): Draft {
  const [mine, setMine] = useState(kept);
  const [checked, setChecked] = useState<Checked>();
  const [applied, setApplied] = useState<Changes>();
  const text = mine?.text ?? site.toml ?? "";
  const latest = useRef(text);
  latest.current = text;
  const isChanged = mine !== undefined && mine.text !== (site.toml ?? "");
  const set = (next: { text: string; base: string } | undefined) => {
    kept = next;
    setMine(next);
  };
  useLeaving(isChanged);

  const check = async () => {
    const found = await checkOf(latest.current);
    setChecked(found);
    setApplied(undefined);
  };
  const apply = async () => {
    const base = checked?.plan?.base;
    if (!base || checked.text !== latest.current) throw new Refused(0, "unchecked", "Check it first.");
    try {
      setApplied(
        await ask(api.PUT("/v1/config", { params: { header: { "If-Match": base } }, body: { toml: text, path: PATH } })),
      );
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== CHANGED_MEANWHILE) throw error;
      await check();
      renew();
      throw new Refused(error.status, error.code, MEANWHILE);
    }
    set(undefined);
    setChecked(undefined);
    renew();
  };
  return {
    text,
    isChanged,
    isOld: isChanged && mine.base !== site.base,
    write: (next) => set({ text: next, base: mine?.base ?? site.base }),
    reset: () => {
      set(undefined);
      setChecked(undefined);
    },
    checked: checked?.text === text ? checked : undefined,
    check,
    apply,
    applied,
  };
}

const MEANWHILE =
  "Somebody applied another configuration meanwhile, so nothing was applied. The page shows what would change now: look at it, and apply it then.";

async function checkOf(text: string): Promise<Checked> {
  try {
    const params = { query: { check: true } };
    return { text, plan: await ask(api.PUT("/v1/config", { params, body: { toml: text, path: PATH } })) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { text, error };
  }
}

/** The browser asks before a page is left on which something was written. */
function useLeaving(isChanged: boolean): void {
  useEffect(() => {
    if (!isChanged) return undefined;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isChanged]);
}
