/** Filters that stand in the address, so that a view can be sent to somebody or kept. */

import { useEffect, useRef } from "preact/hooks";
import { useSearchParams } from "wouter-preact";

/** The address's filters, and a way to change one; an empty value takes it away. */
export function useFilters(): [Record<string, string>, (name: string, value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const change = (name: string, value: string) =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(name, value);
        else after.delete(name);
        return after;
      },
      { replace: true },
    );
  return [Object.fromEntries(search), change];
}

interface ChoiceProps {
  label: string;
  value: string | undefined;
  options: readonly string[];
  /** Whether there is always one: there is no "any" then. */
  isAlways?: boolean;
  onChange: (value: string) => void;
}

/** One of some values, or any. */
export function Choice({ label, value, options, isAlways, onChange }: ChoiceProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value ?? ""} onChange={(event) => onChange(event.currentTarget.value)}>
        {!isAlways && <option value="">any</option>}
        {options.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A text to look for. It counts once one leaves the field or presses Enter. What is being typed stays while a page is drawn again. */
export function Wanted({ label, value, onChange, hint }: Omit<ChoiceProps, "options" | "isAlways"> & { hint?: string }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (input.current) input.current.value = value ?? "";
  }, [value]);
  return (
    <label class="field">
      <span>{label}</span>
      <input
        ref={input}
        type="search"
        defaultValue={value ?? ""}
        placeholder={hint}
        // preact/compat makes onChange come with each letter
        onChangeCapture={(event) => onChange(event.currentTarget.value)}
      />
    </label>
  );
}

/** A day, or none. */
export function Day({ label, value, onChange }: Omit<ChoiceProps, "options" | "isAlways">) {
  return (
    <label class="field">
      <span>{label}</span>
      <input type="date" value={value ?? ""} onChange={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}
