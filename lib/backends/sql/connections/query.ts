type Row = Readonly<Record<string, unknown>>;

export type Rows = readonly Row[];

/**
 * One statement on the backend's own connection, outside of every transaction. Values are parameters, never text. Where
 * the driver answers with counters instead of rows, these are the only row.
 */
export type Query = (sql: string, parameters: readonly unknown[]) => Promise<Rows>;

/** The statements of a data source, a query runner or a manager. */
export function queryOn(source: { query(sql: string, parameters?: unknown[]): Promise<unknown> }): Query {
  return async (sql, parameters) => readRows(await source.query(sql, [...parameters]));
}

/** The rows in what TypeORM's drivers answer: rows, or rows and their number, or an object of counters. */
export function readRows(result: unknown): Rows {
  if (!Array.isArray(result)) return isRow(result) ? [result] : [];
  const [first]: unknown[] = result;
  return (Array.isArray(first) ? first : result).filter(isRow);
}

/** A boolean, or a number, or one as text, as the driver has it. PostgreSQL's own text is there with a parser that keeps it. */
export function isTrue(flag: unknown): boolean {
  return flag === true || flag === 't' || Number(flag) === 1;
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null;
}
