import { LockConfigurationError, LockService, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { mysql, rowClient } from 'nestjs-distributed-lock/mysql';
import { fromSqlite, lockIn } from 'nestjs-distributed-lock/sql';
import { PgBouncer } from '../../servers/pg-bouncer.js';
import { describeWanted, endAfterEach, spawnChild } from '../../support/index.js';
import { type Connection, DATABASES, openConnection, TestDatabase } from './databases.js';
import type { LockInApi } from './lock-in-child.js';

/** Transactions of the two processes together. */
const TRANSACTIONS = Number(process.env.LOCK_IN_TRANSACTIONS ?? 400);

describeWanted(DATABASES, 'a lock inside of an open transaction, %s', (name) => {
  let database: TestDatabase;
  const keep = endAfterEach((connection: Connection) => connection.end());

  beforeAll(async () => {
    database = await TestDatabase.start(name);
  });
  afterAll(() => database.stop());

  const connect = async (url = database.url): Promise<Connection> => keep(await openConnection(name, url));
  const begin = async (): Promise<Connection> => {
    const connection = await connect();
    await connection.begin();
    return connection;
  };

  const takeNumbers = async (url = database.url): Promise<void> => {
    const operator = await connect();
    await operator.ask('drop table if exists numbers');
    await operator.ask('create table numbers (n integer)');
    const file = new URL('./lock-in-child.ts', import.meta.url);
    const children = await Promise.all([0, 1].map(() => spawnChild<LockInApi>(file)));
    try {
      await Promise.all(
        children.map((child) => child.call('takeNumbers', { name, url, count: TRANSACTIONS / children.length })),
      );
    } finally {
      await Promise.all(children.map((child) => child.kill()));
    }
    const [row] = await operator.ask('select count(distinct n) as numbers, max(n) as newest from numbers');
    expect([Number(row?.['numbers']), Number(row?.['newest'])]).toEqual([TRANSACTIONS, TRANSACTIONS]);
  };

  it('excludes two processes: no number of a list twice', () => takeNumbers());

  if (name === 'postgres') {
    it('excludes them behind PgBouncer in transaction mode, too', async () => {
      const { server } = database;
      if (!server) throw new Error('no server');
      await using bouncer = await PgBouncer.start(server, 2);
      await takeNumbers(Object.assign(new URL(database.url), { port: String(bouncer.port) }).href);
    });

    it('is refused where the transaction would read what was there before the wait', async () => {
      for (const level of ['repeatable read', 'serializable']) {
        const connection = await connect();
        await connection.ask(`begin isolation level ${level}`);
        await expect(lockIn(connection.tx, 'k')).rejects.toThrow(/READ COMMITTED/u);
        await connection.ask('rollback');
      }
    });

    it('takes READ UNCOMMITTED for what PostgreSQL makes of it', async () => {
      const connection = await connect();
      await connection.ask('begin isolation level read uncommitted');
      await lockIn(connection.tx, 'uncommitted');
    });

    it('leaves the limit of waits as it was', async () => {
      const [first, second] = [await begin(), await begin()];
      await lockIn(first.tx, 'limit');
      await second.ask("set local lock_timeout = '7s'");
      await expect(lockIn(second.tx, 'limit', { waitMs: 50 })).rejects.toThrow(LockTimeoutError);
      await expect(second.ask('show lock_timeout')).resolves.toEqual([{ lock_timeout: '7s' }]);
    });
  }

  it('waits for the commit of another transaction, and then has the key', async () => {
    const [first, second] = [await begin(), await begin()];
    await lockIn(first.tx, 'waits');
    const order: string[] = [];
    const waiting = lockIn(second.tx, 'waits', { waitMs: 20_000 }).then(() => order.push('second'));
    await expect(lockIn((await begin()).tx, 'waits', { waitMs: 0 })).rejects.toThrow(LockTimeoutError);
    order.push('first');
    await first.ask('commit');
    await waiting;
    expect(order).toEqual(['first', 'second']);
    await second.ask('rollback');
    await lockIn((await begin()).tx, 'waits', { waitMs: 0 });
  });

  it('gives up after waitMs, and the transaction goes on', async () => {
    const [first, second] = [await begin(), await begin()];
    await lockIn(first.tx, 'held');
    await expect(lockIn(second.tx, 'held', { waitMs: 100 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      waitMs: 100,
    });
    await expect(second.ask('select 1 as one')).resolves.toMatchObject([{}]);
    await second.ask('commit');
    await first.ask('commit');
  });

  it('waits for longer than a server can count', async () => {
    const [first, second] = [await begin(), await begin()];
    await lockIn(first.tx, 'patience');
    const waiting = lockIn(second.tx, 'patience', { waitMs: Number.MAX_SAFE_INTEGER });
    await first.ask('commit');
    await waiting;
  });

  it('is freed when its holder dies', async () => {
    const first = await openConnection(name, database.url);
    await first.begin();
    await lockIn(first.tx, 'dies');
    await first.end();
    await lockIn((await begin()).tx, 'dies', { waitMs: 20_000 });
  });

  it('may be taken again in the same transaction', async () => {
    const connection = await begin();
    await lockIn(connection.tx, 'again');
    await lockIn(connection.tx, 'again', { waitMs: 0 });
    await lockIn(connection.tx, 'another', { waitMs: 1_000 });
  });

  it('is refused outside of a transaction, where it would end at once', async () => {
    const connection = await connect();
    await expect(lockIn(connection.tx, 'k')).rejects.toThrow(LockConfigurationError);
    await expect(lockIn(connection.tx, 'k', { waitMs: -1 })).rejects.toThrow(/waitMs/u);
  });

  if (name !== 'sqlite') {
    it('ends with a rollback to a savepoint before it, for new keys and known ones', async () => {
      for (let round = 0; round < 2; round += 1) {
        const [first, second] = [await begin(), await begin()];
        await first.ask('savepoint before_it');
        await lockIn(first.tx, 'inner');
        await first.ask('rollback to savepoint before_it');
        await lockIn(second.tx, 'inner', { waitMs: 0 });
        await second.ask('commit');
      }
    });

    it('keeps other keys apart', async () => {
      const [first, second] = [await begin(), await begin()];
      await lockIn(first.tx, 'one');
      await lockIn(second.tx, 'two', { waitMs: 0 });
    });
  }
});

describeWanted(
  ['mariadb', 'mysql'],
  'a lock where the server ends transactions that waited for too long, %s',
  (name) => {
    let database: TestDatabase;
    const keep = endAfterEach((connection: Connection) => connection.end());
    const connect = async (): Promise<Connection> => keep(await openConnection(name, database.url));

    beforeAll(async () => {
      database = await TestDatabase.start(name, ['--innodb-rollback-on-timeout=ON']);
    });
    afterAll(() => database.stop());

    it.each([0, Infinity])('fails as the server does, and nobody believes in a lock: waitMs %s', async (waitMs) => {
      const [first, second] = [await connect(), await connect()];
      await first.begin();
      await lockIn(first.tx, 'k');
      await second.ask('set session innodb_lock_wait_timeout = 1');
      await second.begin();
      await expect(lockIn(second.tx, 'k', { waitMs })).rejects.toMatchObject({ code: 'ER_LOCK_WAIT_TIMEOUT' });
    });

    it('costs a holder of strategy row its lock at once', async () => {
      const operator = await connect();
      await operator.ask('create table stock (n integer) engine = InnoDB');
      await operator.ask('insert into stock values (1)');
      await operator.begin();
      await operator.ask('update stock set n = 2');
      await using service = new LockService(mysql({ url: database.url, strategy: 'row' }));
      const lock = await service.acquire('k', { ttlMs: 60_000 });
      await rowClient(lock).query('set session innodb_lock_wait_timeout = 1');
      await expect(rowClient(lock).query('update stock set n = 3')).rejects.toThrow(/Lock wait timeout/u);
      // It would be committed by itself.
      await expect(rowClient(lock).query('insert into stock values (9)')).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect(lock.isHeld).toBe(false);
      await lock.release().catch(() => undefined);
      await operator.ask('commit');
      await expect(operator.ask('select n from stock')).resolves.toEqual([{ n: 2 }]);
    });

    it('refuses what a holder of strategy row writes after a deadlock', async () => {
      const operator = await connect();
      await operator.ask('create table pairs (id integer primary key, n integer) engine = InnoDB');
      await operator.ask('insert into pairs values (1, 0), (2, 0)');
      await operator.begin();
      // The server ends the transaction that has changed less.
      await operator.ask('insert into pairs values (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0)');
      await operator.ask('update pairs set n = 1 where id = 1');
      await using service = new LockService(mysql({ url: database.url, strategy: 'row' }));
      const lock = await service.acquire('pairs', { ttlMs: 60_000 });
      await rowClient(lock).query('update pairs set n = 2 where id = 2');
      const waiting = rowClient(lock).query('update pairs set n = 2 where id = 1');
      const [outcome] = await Promise.all([
        waiting.then(
          () => 'done',
          (error: { readonly code?: string }) => error.code,
        ),
        operator.ask('update pairs set n = 1 where id = 2'),
      ]);
      expect(outcome).toBe('ER_LOCK_DEADLOCK');
      await expect(rowClient(lock).query('insert into pairs values (9, 9)')).rejects.toMatchObject({
        code: 'LOCK_LOST',
      });
      await lock.release().catch(() => undefined);
      await operator.ask('rollback');
      await expect(operator.ask('select count(*) as pairs from pairs')).resolves.toEqual([{ pairs: 2 }]);
    });
  },
);

describe('a lock by node:sqlite, whose errors have a number', () => {
  it('waits while another process writes, and gives up after waitMs', async () => {
    const busy = Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR', errcode: 5 });
    let isBusy = true;
    const exec = (): void => {
      if (isBusy) throw busy;
    };
    const tx = fromSqlite({ exec, prepare: () => ({ all: () => [], run: () => undefined }), isTransaction: true });
    await expect(lockIn(tx, 'k', { waitMs: 30 })).rejects.toThrow(LockTimeoutError);
    const waiting = lockIn(tx, 'k', { waitMs: 20_000 });
    isBusy = false;
    await waiting;
    const stale = Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR', errcode: 517 });
    const tooLate = fromSqlite({
      exec: () => {
        throw stale;
      },
      prepare: () => ({ all: () => [], run: () => undefined }),
    });
    await expect(lockIn(tooLate, 'k')).rejects.toBe(stale);
  });
});
