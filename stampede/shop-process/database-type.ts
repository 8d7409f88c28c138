export type DatabaseType = 'sqlite' | 'postgres' | 'mariadb';

/** Forms of an address that an error message offers. */
const FORMS: Readonly<Record<DatabaseType, string>> = {
  sqlite: 'a file',
  postgres: 'postgres://user:password@host:5432/database',
  mariadb: 'mariadb://user:password@host:3306/database',
};

const TYPES: ReadonlyMap<string, DatabaseType> = new Map([
  ['postgres:', 'postgres'],
  ['postgresql:', 'postgres'],
  ['mariadb:', 'mariadb'],
  ['mysql:', 'mariadb'],
]);

/** Returns the type that a URL names; any other text is a SQLite file. `undefined` for other URLs, and for an empty text. */
export function detectDatabaseType(database: string): DatabaseType | undefined {
  if (!database.includes('://')) return database === '' ? undefined : 'sqlite';
  return URL.canParse(database) ? TYPES.get(new URL(database).protocol) : undefined;
}

/** @throws Error that names the variable, without its value: it may contain a password */
export function assertDatabase(variable: string, database: string, type: DatabaseType): void {
  if (detectDatabaseType(database) !== type) throw new Error(`${variable} must be ${FORMS[type]}`);
}
