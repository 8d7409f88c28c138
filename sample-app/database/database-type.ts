export type DatabaseType = 'sqlite' | 'postgres' | 'mariadb';

/** The forms that an error message offers. */
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

/** The type that a URL names; anything else is a SQLite file. `undefined` for other URLs, and for an empty text. */
export function databaseType(database: string): DatabaseType | undefined {
  if (!database.includes('://')) return database === '' ? undefined : 'sqlite';
  return URL.canParse(database) ? TYPES.get(new URL(database).protocol) : undefined;
}

/** @throws Error that names the setting, without what it was: it may contain a password */
export function assertDatabase(setting: string, database: string, allowed: readonly DatabaseType[]): void {
  const type = databaseType(database);
  if (type !== undefined && allowed.includes(type)) return;
  throw new Error(`${setting} must be ${allowed.map((one) => FORMS[one]).join(', or ')}`);
}

/** For people to read: without name and password. */
export function withoutCredentials(database: string): string {
  if (databaseType(database) === 'sqlite') return database;
  const { protocol, host, pathname } = new URL(database);
  return `${protocol}//${host}${pathname}`;
}
