/** The command line that does the same as a page or a button. Pure. */

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** Words as a shell takes them. */
export const command = (...words: string[]): string => words.map(quoted).join(" ");

function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
