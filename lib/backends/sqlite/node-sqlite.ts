import type { SqliteDatabase } from '../sql/sqlite/driver.js';

/** The used part of `DatabaseSync` of `node:sqlite`. https://nodejs.org/api/sqlite.html */
export interface NodeDatabase {
  exec(sql: string): void;
  prepare(sql: string): { all(...values: unknown[]): readonly unknown[] };
  close(): void;
}

/** Names of SQLite's result codes, as other drivers have them. https://sqlite.org/rescode.html */
const CODE_NAMES: Readonly<Record<number, string>> = {
  1: 'SQLITE_ERROR',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  13: 'SQLITE_FULL',
  18: 'SQLITE_TOOBIG',
  19: 'SQLITE_CONSTRAINT',
  20: 'SQLITE_MISMATCH',
};

/** Database of `node:sqlite` whose errors get the codes that other drivers have. */
export class NodeSqliteDatabase implements SqliteDatabase {
  private constructor(private readonly database: NodeDatabase) {}

  static open(openDatabase: () => NodeDatabase): NodeSqliteDatabase {
    return new NodeSqliteDatabase(withErrorCodes(openDatabase));
  }

  exec(sql: string): void {
    withErrorCodes(() => this.database.exec(sql));
  }

  prepare(sql: string): ReturnType<SqliteDatabase['prepare']> {
    const statement = withErrorCodes(() => this.database.prepare(sql));
    const all = (...values: unknown[]): readonly unknown[] => withErrorCodes(() => statement.all(...values));
    return { all, run: all };
  }

  close(): void {
    this.database.close();
  }
}

function withErrorCodes<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    // Under jest, errors of Node's own modules are no `instanceof Error`.
    if (typeof error === 'object' && error !== null && 'errcode' in error)
      Object.assign(error, { code: getCodeName(Number(error.errcode)) });
    throw error;
  }
}

/** The lowest byte of an extended code is its primary code. */
function getCodeName(code: number): string {
  return CODE_NAMES[code & 0xff] ?? `SQLITE_ERROR_${code}`;
}
