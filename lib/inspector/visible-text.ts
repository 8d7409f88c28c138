/** Control characters, invisible characters, and characters that change the direction of the letters around them. */
const INVISIBLE_PATTERN = /[^\P{Z} ]|\p{C}|\p{Default_Ignorable_Code_Point}/gu;

/** Escapes invisible characters in JavaScript's notation. Keys and labels may contain any text of other processes. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE_PATTERN, (char) => `\\u{${char.codePointAt(0)?.toString(16).toUpperCase()}}`);
}
