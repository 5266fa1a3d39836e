/** The views one can choose from, and saving one's own. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";

import { Action, Copy, Field } from "../parts/action";
import { say } from "../parts/notices";
import { builtIn, deleteView, isSame, savedViews, saveView, type View } from "./views";

interface Props {
  /** What stands in the address. */
  search: string;
  isOperator: boolean;
  /** The command that shows the same. */
  command: string;
}

export function ViewsBar({ search, isOperator, command }: Props) {
  const [saved, setSaved] = useState(savedViews);
  const given = builtIn(isOperator);
  const isKnown = [...given, ...saved].some((each) => isSame(each.search, search));
  const remove = (name: string) => {
    setSaved(deleteView(name));
    say(`The view “${name}” is deleted`);
  };
  const save = async (form: FormData) => setSaved(saveView({ name: String(form.get("name")).trim(), search }));
  return (
    <div class="views">
      <nav aria-label="Views">
        {given.map((view) => (
          <ViewLink key={view.name} view={view} search={search} />
        ))}
        {saved.map((view) => (
          <span key={view.name} class="saved">
            <ViewLink view={view} search={search} />
            <button type="button" class="quiet" aria-label={`Delete the view ${view.name}`} onClick={() => remove(view.name)}>
              ×
            </button>
          </span>
        ))}
      </nav>
      <span class="actions">
        {!isKnown && (
          <Action
            title="Save view"
            run={save}
            done="Saved in this browser"
            fields={<Field label="Name" name="name" required maxLength={40} pattern=".*\S.*" hint="A view of the same name is replaced." />}
          />
        )}
        <Copy text={command} title="Copy as command" />
      </span>
    </div>
  );
}

const ViewLink = ({ view, search }: { view: View; search: string }) => (
  <Link href={view.search ? `/?${view.search}` : "/"} aria-current={isSame(view.search, search) ? "page" : undefined}>
    {view.name}
  </Link>
);
