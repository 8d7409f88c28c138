import { refuseOption } from '../../../core/index.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';

const IDENTIFIER_PATTERN = /^[A-Za-z_][\w$]{0,62}$/u;
const IDENTIFIER_DESCRIPTION = 'a plain identifier (letters, digits, "_", at most 63)';

interface TableNaming {
  readonly dialect: Pick<SqlDialect, 'quote' | 'hasSchemas'>;
  readonly schema: string | undefined;
}

/** @throws LockConfigurationError unless the value is a plain identifier, which all servers read in the same way */
export function assertIdentifier(option: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && IDENTIFIER_PATTERN.test(name)) return;
  refuseOption(option, `must be ${IDENTIFIER_DESCRIPTION}; it was ${JSON.stringify(name)}`);
}

/** @throws LockConfigurationError for an invalid name. A schema (on MySQL: a database) may come first: `app.locks` */
export function assertTableName(name: unknown): asserts name is string {
  const parts = typeof name === 'string' ? name.split('.') : [];
  if (parts.length > 0 && parts.length <= 2 && parts.every((part) => IDENTIFIER_PATTERN.test(part))) return;
  refuseOption(
    'tableName',
    `must be ${IDENTIFIER_DESCRIPTION}, or a schema's, a dot and one in it; it was ${JSON.stringify(name)}`,
  );
}

/**
 * @throws LockConfigurationError for a value that is no name, and for a schema on SQLite, where each connection has
 *   schemas of its own
 */
export function quoteTable({ dialect, schema: defaultSchema }: TableNaming, name: string): string {
  assertTableName(name);
  const [firstPart = name, secondPart] = name.split('.');
  if (secondPart !== undefined && !dialect.hasSchemas) {
    refuseOption('tableName', `must have no schema on SQLite; it was ${name}`);
  }
  const schema = secondPart === undefined ? defaultSchema : firstPart;
  const table = dialect.quote(secondPart ?? firstPart);
  return schema === undefined ? table : `${dialect.quote(schema)}.${table}`;
}

export function doubleQuote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a name as MySQL does in every SQL mode. */
export function backQuote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** Quotes a text for a statement of PostgreSQL, whatever a backslash means in the session. */
export function quoteText(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

export function unquoteTable(table: string): string {
  return table.replaceAll(/["`]/gu, '');
}

/** Returns schema and name of a quoted table whose schema is a plain identifier. */
export function splitTableName(table: string): { readonly schema: string | null; readonly name: string } {
  const [firstPart = '', secondPart] = unquoteTable(table).split('.');
  return secondPart === undefined ? { schema: null, name: firstPart } : { schema: firstPart, name: secondPart };
}
