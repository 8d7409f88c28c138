/** Returns a table in Markdown. The first column is aligned to the left, all others to the right. */
export function renderTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = headings.map((_, place) => (place === 0 ? '---' : '---:'));
  return [headings, rule, ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}
