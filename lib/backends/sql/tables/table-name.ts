import { refuseOption } from '../../../core/index.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';

const IDENTIFIER = /^[A-Za-z_][\w$]{0,62}$/u;
const PLAIN = 'a plain identifier (letters, digits, "_", at most 63)';

/** How a database names tables. */
interface TableNaming {
  readonly dialect: Pick<SqlDialect, 'quote' | 'hasSchemas'>;
  readonly schema: string | undefined;
}

/** @throws LockConfigurationError for what may be no name, or another one for another server */
export function assertIdentifier(option: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && IDENTIFIER.test(name)) return;
  refuseOption(option, `must be ${PLAIN}; it was ${JSON.stringify(name)}`);
}

/** The name may begin with a schema (on MySQL: a database): `app.locks`. */
export function assertTableName(name: unknown): asserts name is string {
  const parts = typeof name === 'string' ? name.split('.') : [];
  if (parts.length > 0 && parts.length <= 2 && parts.every((part) => IDENTIFIER.test(part))) return;
  refuseOption('tableName', `must be ${PLAIN}, or a schema's, a dot and one in it; it was ${JSON.stringify(name)}`);
}

/**
 * The table as statements have it: quoted as it is written, in the schema that it names, or else in the default one.
 * @throws LockConfigurationError for what is no name, and for a schema on SQLite, where each connection has names of its
 * own for other files
 */
export function quotedTable({ dialect, schema: defaultSchema }: TableNaming, name: string): string {
  assertTableName(name);
  const [first = name, second] = name.split('.');
  if (second !== undefined && !dialect.hasSchemas) {
    refuseOption('tableName', `must have no schema on SQLite; it was ${name}`);
  }
  const schema = second === undefined ? defaultSchema : first;
  const table = dialect.quote(second ?? first);
  return schema === undefined ? table : `${dialect.quote(schema)}.${table}`;
}

/** As the standard quotes a name. */
export function doubleQuoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** As MySQL quotes a name, in every SQL mode. */
export function backQuoted(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** A text in a statement of PostgreSQL, whatever the session takes a backslash for. */
export function quotedText(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** As people write it, of a quoted table. */
export function plainTable(table: string): string {
  return table.replaceAll(/["`]/gu, '');
}

/** The parts of a quoted table, where no schema but a plain identifier is possible. */
export function partsOf(table: string): { readonly schema: string | null; readonly name: string } {
  const [first = '', second] = plainTable(table).split('.');
  return second === undefined ? { schema: null, name: first } : { schema: first, name: second };
}
