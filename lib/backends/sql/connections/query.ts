type Row = Readonly<Record<string, unknown>>;

export type Rows = readonly Row[];

/**
 * Runs one statement. Values are parameters, never text. Where the driver answers with counters instead of rows, the
 * object of counters is the only row.
 */
export type Query = (sql: string, parameters: readonly unknown[]) => Promise<Rows>;

export function createQuery(source: { query(sql: string, parameters?: unknown[]): Promise<unknown> }): Query {
  return async (sql, parameters) => readRows(await source.query(sql, [...parameters]));
}

/** Returns the rows in an answer of a driver: an array of rows, rows with their number, or an object of counters. */
export function readRows(result: unknown): Rows {
  if (!Array.isArray(result)) return isRow(result) ? [result] : [];
  const [firstElement]: unknown[] = result;
  return (Array.isArray(firstElement) ? firstElement : result).filter(isRow);
}

/** Drivers return a boolean, a number, a number as text, or PostgreSQL's text `t`. */
export function isTrue(flag: unknown): boolean {
  return flag === true || flag === 't' || Number(flag) === 1;
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null;
}
