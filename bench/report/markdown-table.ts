/** The first column is text, the others are set to the right. */
export function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = headings.map((_, place) => (place === 0 ? '---' : '---:'));
  return [headings, rule, ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}
