/** The fields of the list's filters. What is chosen stands in the address at once. On a phone a button opens them. */

import { useState } from "preact/hooks";

import { Choice, Wanted } from "../parts/filters";
import { STATES, type JobFilters } from "./query";

interface Props {
  filters: JobFilters;
  /** Changes the address; an empty value takes a filter away. */
  change: (changes: Partial<Record<"state" | "name" | "since" | "owner" | "target" | "all", string>>) => void;
  addTag: (tag: string) => void;
  removeTag: (tag: string) => void;
  isOperator: boolean;
}

export function JobFilterFields({ filters, change, addTag, removeTag, isOperator }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="filters-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters
      </button>
      <div class={isOpen ? "filters" : "filters closed"} role="search" aria-label="Filter jobs">
        <Choice label="State" value={filters.state} options={STATES} onChange={(state) => change({ state })} />
        <Wanted label="Name" value={filters.name} onChange={(name) => change({ name })} hint="build*" />
        <Wanted label="Since" value={filters.since} onChange={(since) => change({ since })} hint="2d, today" />
        <Wanted
          label="Owner"
          value={filters.owner}
          onChange={(owner) => change({ owner, all: owner || !filters.all ? "" : "true" })}
        />
        <Wanted label="Target" value={filters.target} onChange={(target) => change({ target })} />
        <TagField add={addTag} />
        {isOperator && (
          <label class="check">
            <input
              type="checkbox"
              checked={filters.all}
              onChange={(event) => change({ all: event.currentTarget.checked ? "true" : "", ...(event.currentTarget.checked && { owner: "" }) })}
            />
            Everybody’s
          </label>
        )}
        {filters.tags.length > 0 && (
          <ul class="chips" aria-label="Tags that are looked for">
            {filters.tags.map((tag) => (
              <li key={tag}>
                <span class="mono">{tag}</span>
                <button type="button" class="quiet" aria-label={`Do not look for the tag ${tag}`} onClick={() => removeTag(tag)}>
                  ×
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </>
  );
}

/** A tag more to look for; the field is empty again afterwards. */
function TagField({ add }: { add: (tag: string) => void }) {
  return (
    <label class="field">
      <span>Tag</span>
      <input
        type="search"
        placeholder="name=value"
        // preact/compat makes onChange come with each letter
        onChangeCapture={({ currentTarget: field }) => {
          add(field.value);
          field.value = "";
        }}
      />
    </label>
  );
}
