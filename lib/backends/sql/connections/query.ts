type Row = Readonly<Record<string, unknown>>;

export type Rows = readonly Row[];

/**
 * Runs one statement. Values are passed as parameters, never within the SQL text. Where the driver returns an object of
 * counters instead of rows, such as `affectedRows`, this object is the only row.
 */
export type Query = (sql: string, parameters: readonly unknown[]) => Promise<Rows>;

export function createQuery(source: { query(sql: string, parameters?: unknown[]): Promise<unknown> }): Query {
  return async (sql, parameters) => readRows(await source.query(sql, [...parameters]));
}

/** Returns the rows in a driver's answer: an array of rows, a tuple that begins with one, or an object of counters. */
export function readRows(result: unknown): Rows {
  if (!Array.isArray(result)) return isRow(result) ? [result] : [];
  const [firstElement]: unknown[] = result;
  return (Array.isArray(firstElement) ? firstElement : result).filter(isRow);
}

/** Returns whether a driver's flag is true: a boolean, a number, a number as text, or PostgreSQL's text `t`. */
export function isTrue(flag: unknown): boolean {
  return flag === true || flag === 't' || Number(flag) === 1;
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null;
}
