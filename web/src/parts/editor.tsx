/** A text with numbered lines that can be edited. Lines with mistakes are marked, and can be gone to. */

import type { Ref } from "preact";
import { useRef } from "preact/hooks";
import "../style/editor.css";

interface Props {
  label: string;
  value: string;
  onInput: (value: string) => void;
  /** Lines with a mistake, counted from 1. */
  marked: ReadonlySet<number>;
  field: Ref<HTMLTextAreaElement>;
  isReadOnly?: boolean;
}

export function Editor({ label, value, onInput, marked, field, isReadOnly = false }: Props) {
  const numbers = useRef<HTMLDivElement>(null);
  const lines = value.split("\n").length;
  return (
    <div class="editor">
      <div class="numbers" ref={numbers} aria-hidden="true">
        {Array.from({ length: lines }, (_, index) => (
          <div key={index} class={marked.has(index + 1) ? "bad" : ""}>
            {marked.has(index + 1) ? "! " : ""}
            {index + 1}
          </div>
        ))}
      </div>
      <textarea
        ref={field}
        aria-label={label}
        value={value}
        rows={Math.min(Math.max(lines + 1, 12), 32)}
        wrap="off"
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        readOnly={isReadOnly}
        onInput={(event) => onInput(event.currentTarget.value)}
        onScroll={(event) => numbers.current && (numbers.current.scrollTop = event.currentTarget.scrollTop)}
      />
    </div>
  );
}

/** Where a line and a column begin in a text; both count from 1. */
export function offsetOf(text: string, line: number, column: number): number {
  const before = text.split("\n").slice(0, line - 1);
  return Math.min(text.length, before.reduce((sum, each) => sum + each.length + 1, 0) + column - 1);
}

/** Puts the cursor where a mistake is, and shows it. */
export function goTo(field: HTMLTextAreaElement, line: number, column: number): void {
  const at = offsetOf(field.value, line, column);
  field.focus();
  field.setSelectionRange(at, at);
  const height = parseFloat(getComputedStyle(field).lineHeight);
  field.scrollTop = Math.max(0, (line - 5) * height);
}
