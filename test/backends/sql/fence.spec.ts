import { jest } from '@jest/globals';
import { type ConnectionOptions, createConnection } from 'mysql2/promise';
import { LockConfigurationError, StaleFenceError } from 'nestjs-distributed-lock/core';
import { fence, type Fencing, fromMysql2, type SqlTransaction } from 'nestjs-distributed-lock/sql';
import { describeWanted, endAfterEach, eventually } from '../../support/index.js';
import { LIST_MS } from '../typeorm/operators.js';
import { BLOCKED_SESSIONS_SQL } from './blocked-sessions.js';
import { type Connection, DATABASES, openConnection, TestDatabase } from './databases.js';

const LARGEST_TOKEN = 2n ** 63n - 1n;

describeWanted(DATABASES, 'the fence of an open transaction, %s', (name) => {
  let database: TestDatabase;
  const keep = endAfterEach((connection: Connection) => connection.end());

  beforeAll(async () => {
    database = await TestDatabase.start(name);
  });
  afterAll(() => database.stop());

  const begin = async (): Promise<Connection> => {
    const connection = keep(await openConnection(name, database.url));
    await connection.begin();
    return connection;
  };
  const write = async (resource: string, fencingToken: bigint): Promise<void> => {
    const connection = await begin();
    try {
      await fence(connection.tx, resource, { fencingToken });
      await connection.ask('commit');
    } catch (error) {
      await connection.ask('rollback');
      throw error;
    }
  };

  it('lets the newest holder write, again and again, and refuses a former one', async () => {
    await write('a', 5n);
    await write('a', 7n);
    await write('a', 7n);
    await expect(write('a', 6n)).rejects.toThrow(StaleFenceError);
    await expect(write('a', 6n)).rejects.toMatchObject({ token: 6n, newest: 7n });
    await write('b', 1n);
  });

  it('takes the largest token, and any name', async () => {
    for (const resource of [`it's "quoted" \\ $1 ? :a`, 'nul\0', '🔒', 'ä'.repeat(600)]) {
      await write(resource, LARGEST_TOKEN);
      await expect(write(resource, LARGEST_TOKEN - 1n)).rejects.toThrow(StaleFenceError);
    }
  });

  it('is forgotten by a rollback', async () => {
    const connection = await begin();
    await fence(connection.tx, 'undone', { fencingToken: 9n });
    await connection.ask('rollback');
    await write('undone', 3n);
  });

  it('never refuses those who share a key because of each other, but for a newer one who had it alone', async () => {
    const share = { mode: 'shared' } as const;
    const read = async (fencingToken: bigint): Promise<void> => {
      const connection = await begin();
      try {
        await fence(connection.tx, 'shared', { fencingToken, share });
      } finally {
        await connection.ask('commit');
      }
    };
    await read(5n);
    await read(4n);
    await write('shared', 6n);
    await read(7n);
    await expect(read(5n)).rejects.toThrow(StaleFenceError);
  });

  it('says what to do where its table is missing', async () => {
    const connection = await begin();
    const failed = fence(connection.tx, 'a', { fencingToken: 1n }, { tableName: 'nowhere' });
    await expect(failed).rejects.toThrow(/the table nowhere is missing.*npx nestjs-distributed-lock migrate/u);
    await connection.ask('rollback');
  });

  it('is refused outside of a transaction, where it would protect nothing', async () => {
    const connection = keep(await openConnection(name, database.url));
    await expect(fence(connection.tx, 'a', { fencingToken: 99n })).rejects.toThrow(LockConfigurationError);
    await write('a', 8n);
  });

  if (name !== 'sqlite') {
    it('lets the newest holder read what a former one commits while the fence waits for it', async () => {
      const operator = await begin();
      await operator.ask('create table note (id int)');
      await operator.ask('commit');
      const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
      await write('late', 1n);
      const [former, newest] = [await begin(), await begin()];
      await fence(former.tx, 'late', { fencingToken: 2n });
      await former.ask('insert into note values (1)');
      const fenced = fence(newest.tx, 'late', { fencingToken: 3n });
      const isBlocked = async (): Promise<void> =>
        expect(await operator.ask(BLOCKED_SESSIONS_SQL[name])).toHaveLength(1);
      await eventually(isBlocked, { everyMs: LIST_MS });
      await former.ask('commit');
      await fenced;
      await expect(newest.ask('select id from note')).resolves.toEqual([{ id: 1 }]);
      // Nobody has read before its lock, and the process is warned once only: a false alarm would hide the next.
      expect(warned).not.toHaveBeenCalled();
      warned.mockRestore();
    });
  }
});

it('refuses what is no transaction, no lock, and no key', async () => {
  const tx: SqlTransaction = { database: 'postgres', query: () => Promise.reject(new Error('asked')) };
  const refused = { code: 'LOCK_CONFIGURATION' };
  await expect(fence({ ...tx, database: 'oracle' as 'postgres' }, 'a', { fencingToken: 1n })).rejects.toMatchObject(
    refused,
  );
  await expect(fence(undefined as unknown as SqlTransaction, 'a', { fencingToken: 1n })).rejects.toMatchObject(refused);
  await expect(fence(tx, 'a', { fencingToken: 1 as unknown as bigint })).rejects.toMatchObject(refused);
  await expect(fence(tx, '', { fencingToken: 1n })).rejects.toMatchObject(refused);
  await expect(fence(tx, 'a', { fencingToken: 1n }, { tableName: 'a; drop' })).rejects.toMatchObject(refused);
});

describeWanted(['mariadb', 'mysql'], 'the fence by a client with rows of its own shape, %s', (name) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await TestDatabase.start(name);
  });
  afterAll(() => database.stop());

  const raise = async (options: ConnectionOptions, lock: Fencing): Promise<void> => {
    const connection = await createConnection({ ...options, uri: database.url });
    try {
      await connection.beginTransaction();
      await fence(fromMysql2(connection), 'shape', lock);
      await connection.commit();
    } finally {
      connection.destroy();
    }
  };
  const share = { mode: 'shared' } as const;

  it('is read where a text is bytes', async () => {
    for (const options of [{}, { charset: 'BINARY' }, { typeCast: false }]) {
      await raise(options, { fencingToken: 5n });
      await raise(options, { fencingToken: 6n, share });
      await expect(raise(options, { fencingToken: 4n })).rejects.toThrow(StaleFenceError);
      await expect(raise(options, { fencingToken: 4n, share })).rejects.toThrow(StaleFenceError);
    }
  });

  it.each([{ rowsAsArray: true }, { nestTables: true }])('is never passed unread: %j', async (options) => {
    await raise({}, { fencingToken: 5n });
    await expect(raise(options, { fencingToken: 4n, share })).rejects.toThrow(LockConfigurationError);
    await expect(raise(options, { fencingToken: 5n })).rejects.toThrow(/rowsAsArray/u);
  });
});
