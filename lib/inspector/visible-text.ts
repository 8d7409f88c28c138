/** Characters that a terminal obeys, that are invisible, or that turn the letters around them. */
const INVISIBLE_PATTERN = /[^\P{Z} ]|\p{C}|\p{Default_Ignorable_Code_Point}/gu;

/** Writes such characters out, in the notation of JavaScript: other processes choose the texts of logs and terminals. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE_PATTERN, (char) => `\\u{${char.codePointAt(0)?.toString(16).toUpperCase()}}`);
}
