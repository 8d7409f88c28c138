import { runInNewContext } from 'node:vm';
import { NodeSqliteDatabase } from '../../../lib/backends/sqlite/node-sqlite.js';

it.each([
  [5, 'SQLITE_BUSY'],
  [517, 'SQLITE_BUSY'],
  [2067, 'SQLITE_CONSTRAINT'],
])('node:sqlite: an error of another realm with the number %i, as under jest, has the code %s', (errcode, code) => {
  const error: unknown = runInNewContext('Object.assign(new Error("database is locked"), { errcode })', { errcode });
  const open = (): never => {
    throw error;
  };
  expect(() => NodeSqliteDatabase.open(open)).toThrow('database is locked');
  expect(error).toMatchObject({ code });
});
