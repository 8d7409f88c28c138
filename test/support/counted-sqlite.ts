import Database from 'libsql';

/** All that this process has asked of SQLite, apart from where transactions begin and end. */
export const sqliteStatements: string[] = [];

const BOUNDARY = /^\s*(begin|commit|rollback)\b/iu;

/** A driver that counts, as there is no server to do it. */
export class CountedSqlite extends Database {
  override readonly prepare: Database.Database['prepare'] = (sql: string) => {
    sqliteStatements.push(sql);
    return super.prepare(sql);
  };

  override exec(sql: string): this {
    if (!BOUNDARY.test(sql)) sqliteStatements.push(sql);
    return super.exec(sql);
  }
}
