/** What a terminal would show of a line: text with colours. All other control sequences are left out. */

import Anser from "anser";

/** A piece of a line that looks the same. */
export interface Span {
  text: string;
  /** Names of CSS classes, such as `fg-red bold`; empty for plain text. */
  classes: string;
  /** Colours of the 256-colour palette or RGB, as CSS has them. */
  color?: string;
  background?: string;
}

/** Operating system commands (titles, links, clipboards) and other strings for the terminal itself. */
const STRINGS = /(?:\u001b\]|\u009d)[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|\u001b[PX^_][^\u001b]*\u001b\\/g;
/** Control sequences; those that end with m set colours. */
const SEQUENCES = /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~])/g;
const ESCAPES = /\u001b(?!\[[\d;:]*m)[ -/]*[0-Z\\^-~]?/g;
const COLOURS = /\u001b\[[\d;:]*m/g;
/** Control characters, and those that change the direction of text so that it reads as something else. */
const CONTROLS = /[\u0000-\u0008\u000a-\u001a\u001c-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
const SPECIAL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

/** Whether a line has anything but text. */
export const isSpecial = (line: string): boolean => SPECIAL.test(line);

/** How many earlier versions of a line a terminal would have overwritten: progress bars return to its start. */
export const overwritten = (line: string): number => returned(line).length - 1;

/** A line without colours, as it is searched and measured. */
export function plain(line: string): string {
  return isSpecial(line) ? tidy(line).replace(COLOURS, "") : line;
}

/** A line with its colours. */
export function spans(line: string): Span[] {
  if (!isSpecial(line)) return [{ text: line, classes: "" }];
  const tidied = tidy(line);
  if (!tidied.includes("\u001b")) return [{ text: tidied, classes: "" }];
  return Anser.ansiToJson(tidied, { json: true, use_classes: true, remove_empty: true }).map(span);
}

/** A line in which only colours are left of what is not text. Visible signs stand for control characters. */
function tidy(line: string): string {
  const seen = returned(line).at(-1) ?? "";
  return seen
    .replace(STRINGS, "")
    .replace(SEQUENCES, (_, values: string, end: string) => (end === "m" && /^[\d;:]*$/.test(values) ? `\u001b[${values.replaceAll(":", ";")}m` : ""))
    .replace(ESCAPES, "")
    .replace(CONTROLS, sign);
}

const returned = (line: string): string[] => line.replace(/\r+$/, "").split("\r");

function sign(control: string): string {
  const code = control.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "\u2421" : "\ufffd";
}

function span(found: Anser.AnserJsonEntry): Span {
  const decorations = found.decorations.filter((each) => each !== "blink" && (each !== "reverse" || (!found.fg && !found.bg)));
  const names = [named("fg", found.fg), named("bg", found.bg), ...decorations].filter(Boolean);
  const color = exact(found.fg, found.fg_truecolor);
  const background = exact(found.bg, found.bg_truecolor);
  return { text: found.content, classes: names.join(" "), ...(color && { color }), ...(background && { background }) };
}

/** The class of one of the sixteen colours that a theme has. */
function named(place: string, colour: string | null): string {
  return colour && !/palette|truecolor/.test(colour) ? colour.replace("ansi", place) : "";
}

function exact(colour: string | null, rgb: string | null): string | undefined {
  if (colour === "ansi-truecolor" && rgb) return `rgb(${rgb})`;
  const found = /^ansi-palette-(\d+)$/.exec(colour ?? "");
  return found ? palette(Number(found[1])) : undefined;
}

/** A colour of the palette's upper 240: a cube of 6×6×6, then greys. */
function palette(number: number): string {
  if (number >= 232) return `rgb(${Array(3).fill(8 + 10 * (number - 232)).join(", ")})`;
  const level = (index: number) => (index ? 55 + 40 * index : 0);
  const cube = number - 16;
  return `rgb(${level(Math.floor(cube / 36))}, ${level(Math.floor(cube / 6) % 6)}, ${level(cube % 6)})`;
}

/** Spans with the given ranges marked: each range begins and ends a span. */
export function marked(all: Span[], ranges: readonly (readonly [number, number])[]): (Span & { isMarked: boolean })[] {
  const found: (Span & { isMarked: boolean })[] = [];
  let at = 0;
  for (const each of all) {
    const end = at + each.text.length;
    for (let from = at; from < end; ) {
      const range = ranges.find((one) => one[1] > from && one[0] < end);
      const isMarked = range !== undefined && range[0] <= from;
      const to = Math.min(end, range === undefined ? end : isMarked ? range[1] : range[0]);
      found.push({ ...each, text: each.text.slice(from - at, to - at), isMarked });
      from = to;
    }
    at = end;
  }
  return found;
}
