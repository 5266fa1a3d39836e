/** Keys that go somewhere, and the list of them: "?" shows it. They can be turned off. */

import { useEffect, useRef, useState } from "preact/hooks";
import { navigate } from "wouter-preact/use-browser-location";

import { useSession } from "./session";
import "./style/keys.css";

/** After "g": where a key goes. */
const PLACES: [string, string, string][] = [
  ["j", "/", "Jobs"],
  ["p", "/pools", "Pools"],
  ["g", "/graph", "Graph"],
  ["w", "/workers", "Workers"],
  ["r", "/resources", "Resources"],
  ["f", "/artifacts", "Files"],
  ["c", "/prices", "Prices"],
  ["h", "/shares", "Shares"],
  ["s", "/site", "Site"],
  ["t", "/tokens", "Your tokens"],
  ["o", "/operator", "Operator"],
  ["u", "/users", "Users"],
  ["a", "/audit", "Audit log"],
];
const FOR_OPERATORS = new Set(["g", "w", "r", "o", "u", "a"]);

const OFF = "keys-off";
const SECOND_KEY_MS = 1500;

/** Whether a key is typed into something, or is a part of a shortcut of the browser's. */
function isTyped(event: KeyboardEvent): boolean {
  const on = event.target instanceof Element ? event.target : undefined;
  return (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    !!on?.closest("input, textarea, select, [contenteditable], dialog[open]")
  );
}

let show: (() => void) | undefined;

/** Shows the list of keys, for who has none. */
export const showKeys = (): void => show?.();

/** Listens to keys, and shows the list of them on "?". Once, in the shell. */
export function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    show = () => dialog.current?.showModal();
    let first = -Infinity; // times count from when the page was opened
    const press = (event: KeyboardEvent) => {
      if (isTyped(event) || localStorage.getItem(OFF)) return;
      const isSecond = event.timeStamp - first < SECOND_KEY_MS;
      const place = isSecond && PLACES.find(([key]) => key === event.key);
      first = !isSecond && event.key === "g" ? event.timeStamp : -Infinity;
      if (place) navigate(place[1]);
      else if (event.key === "?") showKeys();
      else if (event.key === "/" && findField()) event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return (
    <dialog ref={dialog} class="keys" aria-label="Keys and documentation">
      <List close={() => dialog.current?.close()} />
    </dialog>
  );
}

/** Goes to the first field of the page in which one looks for something. */
function findField(): boolean {
  const field = document.querySelector<HTMLInputElement>("main input[type=search]");
  field?.focus();
  return field !== null;
}

function List({ close }: { close: () => void }) {
  const { isOperator } = useSession();
  const [isOff, setOff] = useState(localStorage.getItem(OFF) !== null);
  const turn = (off: boolean) => {
    if (off) localStorage.setItem(OFF, "yes");
    else localStorage.removeItem(OFF);
    setOff(off);
  };
  const places = PLACES.filter(([key]) => isOperator || !FOR_OPERATORS.has(key));
  return (
    <>
      <h2>Keys</h2>
      <dl class="facts">
        <Key keys={["?"]} does="this list" />
        <Key keys={["/"]} does="to the first field in which one looks for something" />
        {places.map(([key, , title]) => (
          <Key key={key} keys={["g", key]} does={title} />
        ))}
      </dl>
      <label class="check">
        <input type="checkbox" checked={!isOff} onChange={(event) => turn(!event.currentTarget.checked)} />
        <span>Use these keys</span>
      </label>
      <h2>Documentation</h2>
      <p>
        It comes with Penstock, in <code>docs/</code>; <code>make docs</code> writes it as a site. The command line explains
        itself: <code>penstock --help</code>.
      </p>
      <div class="actions">
        <button type="button" class="main" onClick={close}>
          Close
        </button>
      </div>
    </>
  );
}

function Key({ keys, does }: { keys: string[]; does: string }) {
  return (
    <>
      <dt>
        {keys.map((each, index) => (
          <span key={index}>
            {index > 0 && " then "}
            <kbd>{each}</kbd>
          </span>
        ))}
      </dt>
      <dd>{does}</dd>
    </>
  );
}
