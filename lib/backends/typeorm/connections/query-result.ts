type Row = Record<string, unknown>;

/** The rows in what TypeORM's drivers answer: rows, or rows and their number, or an object of counters. */
export function rowsOf(result: unknown): readonly Row[] {
  if (!Array.isArray(result)) return isRow(result) ? [result] : [];
  const [first]: unknown[] = result;
  return (Array.isArray(first) ? first : result).filter(isRow);
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null;
}
