import { LockBackendError, LockConfigurationError, LockLostError } from 'nestjs-distributed-lock/core';
import { rowManager, typeorm } from 'nestjs-distributed-lock/typeorm';
import type { Lease } from '../../../lib/core/leasing/lease.js';
import type { RowBackendOptions } from '../../../lib/backends/sql/row/row-backend.js';
import {
  aborted,
  closeAfterEach,
  Contract,
  eventually,
  failureOf,
  Gate,
  type Listener,
  timeLimitOf,
} from '../../support/index.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { sqlHarness } from './harness.js';
import { LIST_MS } from './operators.js';
import { Stock } from './optimistic-entities.js';

const TTL_MS = 20_000;

type RowLease = Lease & { complete(): Promise<void>; readonly revoked: AbortSignal };

describeWanted(['postgres-row', 'mariadb-row'], '%s', (name) => {
  const harness = sqlHarness(name);
  const { type } = harness;
  const contract = new Contract(harness);
  const keep = closeAfterEach();

  beforeAll(async () => {
    await harness.start();
    await harness.ask(
      'create table stock (id integer primary key, remaining integer not null, version integer not null)',
    );
  });
  afterAll(() => harness.stop());
  beforeEach(async () => {
    await harness.ask('delete from stock');
    await harness.ask('insert into stock values (1, 10, 1), (2, 10, 1)');
  });
  afterEach(() => contract.endTest());

  const connect = (options: RowBackendOptions = {}, through?: Listener) => {
    const dataSource = { options: { ...harness.dataSource(through), entities: [Stock] } };
    return keep(typeorm({ dataSource, strategy: 'row', synchronize: true, ...options })());
  };
  const win = async (key: string, backend = connect()): Promise<RowLease> =>
    (await contract.win(backend, key, { ttlMs: TTL_MS })) as RowLease;
  const remaining = async (id: number): Promise<number> =>
    Number((await harness.ask(`select remaining from stock where id = ${id}`))[0]?.remaining);
  const token = async (key: string): Promise<bigint> =>
    BigInt(String((await harness.ask(`select token from distributed_lock where lock_key = '${key}'`))[0]?.token));

  it('gives the holder a manager with the entities of the application, and commits with `complete`', async () => {
    const lease = await win('sale');
    const manager = rowManager(lease);
    await manager.decrement(Stock, { id: 1 }, 'remaining', 1);
    expect(await remaining(1)).toBe(10);
    await lease.complete();
    expect(await remaining(1)).toBe(9);
    expect(await token('sale')).toBe(lease.fencingToken);
    await expect(manager.decrement(Stock, { id: 1 }, 'remaining', 1)).rejects.toThrow(/transaction is over/u);
    await lease.release();
    await expect(lease.complete()).rejects.toThrow(LockLostError);
    expect(await remaining(1)).toBe(9);
  });

  it('undoes what was not completed, also within nested transactions, and keeps the token', async () => {
    const lease = await win('sale');
    await rowManager(lease).transaction((inner) => inner.decrement(Stock, { id: 1 }, 'remaining', 1));
    await lease.release();
    expect(await remaining(1)).toBe(10);
    expect(await token('sale')).toBe(lease.fencingToken);
  });

  it('ends once, whatever comes at the same time', async () => {
    const backend = connect({ poolSize: 1 });
    const lease = await win('sale', backend);
    await rowManager(lease).decrement(Stock, { id: 1 }, 'remaining', 1);
    await Promise.all([lease.complete(), lease.renew(), lease.release(), lease.release()]);
    await expect(lease.renew()).resolves.toBe(false);
    expect(await remaining(1)).toBe(9);
    const next = await win('sale', backend);
    await expect(contract.contend(backend, 'other')).rejects.toThrow(/all 1 connections/u);
    await next.release();
  });

  it('never takes the commit of a failed transaction for a success', async () => {
    const lease = await win('sale');
    const manager = rowManager(lease);
    await manager.decrement(Stock, { id: 1 }, 'remaining', 1);
    await expect(manager.query('select nonsense from stock')).rejects.toThrow();
    if (type === 'postgres') await expect(lease.complete()).rejects.toThrow(/transaction is aborted/u);
    else await lease.complete();
    await lease.release();
    expect(await remaining(1)).toBe(type === 'postgres' ? 10 : 9);
    await (await win('sale')).release();
  });

  it('gives a higher token after a holder who was killed, and whose token went with it', async () => {
    const first = await win('killed');
    await first.release();
    const tokens = [first.fencingToken];
    for (let round = 0; round < 5; round += 1) {
      const lease = await win('killed');
      const told = aborted(lease.revoked);
      tokens.push(lease.fencingToken);
      await harness.revoke('killed');
      await told;
      expect(await token('killed')).toBe(first.fencingToken);
    }
    expect(tokens.toSorted((a, b) => Number(a - b))).toEqual(tokens);
    expect(new Set(tokens).size).toBe(6);
  });

  it('names the table where a new connection waits for whoever has it locked', async () => {
    await (await win('before')).release();
    const [lock, unlock] =
      type === 'postgres'
        ? ['begin; lock table distributed_lock in access exclusive mode', 'rollback']
        : ['lock tables distributed_lock write', 'unlock tables'];
    await harness.ask(lock);
    const connectTimeoutMs = timeLimitOf(500);
    const refused = await failureOf(contract.contend(connect({ connectTimeoutMs }), 'sale'));
    await harness.ask(unlock);
    expect(String(refused)).toMatch(
      new RegExp(`did not show the table of the locks.*connectTimeoutMs: ${connectTimeoutMs}`, 'u'),
    );
  });

  it('locks one row, and not the table', async () => {
    const backend = connect();
    for (let i = 0; i < 50; i += 1) await (await win(`row-${i}`, backend)).release();
    const lease = await win('row-25', backend);
    const noWait = { postgres: 'set lock_timeout = 1', mariadb: 'set session innodb_lock_wait_timeout = 0' };
    await harness.ask(noWait[type]);
    for (let i = 0; i < 50; i += 1) {
      const update = harness.ask(`update distributed_lock set metadata = 'free' where lock_key = 'row-${i}'`);
      await (i === 25 ? expect(update).rejects.toThrow() : update);
    }
    await harness.ask(`delete from distributed_lock where lock_key = 'row-24'`);
    await (await win('row-24', backend)).release();
    if (type === 'mariadb') {
      const onlyTransaction = async (): Promise<number | false> => {
        const [row, ...others] = await harness.ask('select trx_rows_locked as n from information_schema.innodb_trx');
        return row && others.length === 0 ? Number(row['n']) : false;
      };
      const locked = await eventually(onlyTransaction, { everyMs: LIST_MS });
      process.stderr.write(`mariadb-row: ${locked} row locked of 50\n`);
      expect(locked).toBe(1);
    }
    await harness.ask(noWait[type].replace(/= .*/u, '= default'));
    await lease.release();
  });

  const onPostgres = type === 'postgres' ? it : it.skip;

  onPostgres('fails on a key whose row the database does not keep, and asks no further', async () => {
    const backend = connect({ patienceMs: 0 });
    await (await win('kept', backend)).release();
    const forget = 'create function forget() returns trigger language plpgsql as $$ begin return null; end $$';
    await harness.ask(forget);
    await harness.ask(
      `create trigger forgets before insert on distributed_lock for each row
           when (new.lock_key = 'never kept') execute function forget()`,
    );
    const failure = contract.contend(backend, 'never kept');
    await expect(failure).rejects.toThrow(/the row of the key is not to be seen after it was made/u);
    await (await win('kept', backend)).release();
  });

  it('S2: a deadlock of the holder ends the lock at once where it ends the transaction', async () => {
    const [one, two] = [await win('one'), await win('two')];
    await rowManager(one).decrement(Stock, { id: 1 }, 'remaining', 1);
    await rowManager(two).decrement(Stock, { id: 2 }, 'remaining', 1);
    const outcomes = await Promise.allSettled([
      rowManager(one).decrement(Stock, { id: 2 }, 'remaining', 1),
      rowManager(two).decrement(Stock, { id: 1 }, 'remaining', 1),
    ]);
    const [loser, winner] = outcomes[0].status === 'rejected' ? [one, two] : [two, one];
    expect(loser.revoked.aborted).toBe(type === 'mariadb');
    await expect(loser.renew()).resolves.toBe(type === 'postgres');
    await expect(loser.complete()).rejects.toThrow();
    await winner.complete();
    await Promise.all([one.release(), two.release()]);
    expect([await remaining(1), await remaining(2)]).toEqual([9, 9]);
  });

  it('renews behind a statement of the holder that takes longer than one of ours may', async () => {
    const lease = await win('slow', connect({ requestTimeoutMs: timeLimitOf(300) }));
    const seconds = timeLimitOf(1_000) / 1_000;
    const slow = { postgres: `select pg_sleep(${seconds})`, mariadb: `select sleep(${seconds})` };
    const working = rowManager(lease).query(slow[type]);
    await expect(lease.renew()).resolves.toBe(true);
    await working;
    await lease.release();
  });

  it('S3: says when all its connections are in use, and is as good as before afterwards', async () => {
    const backend = connect({ poolSize: 1 });
    const lease = await win('first', backend);
    const refused = contract.contend(backend, 'second', { waitMs: 100 });
    await expect(refused).rejects.toThrow(LockBackendError);
    await expect(refused).rejects.toThrow(/all 1 connections for row locks are in use: raise poolSize/u);
    await lease.release();
    await (await win('second', backend)).release();
  });

  it('S3: waits for a connection without losing patience, says what is in the way, and then has the row', async () => {
    const backend = connect({ poolSize: 1, patienceMs: 0 });
    const lease = await win('first', backend);
    const inTheWay = new Gate();
    const seen: unknown[] = [];
    const onBlocked = (by: unknown): void => {
      seen.push(by);
      inTheWay.open();
    };
    const waiting = contract.win(backend, 'second', { waitMs: 20_000, ttlMs: TTL_MS, onBlocked });
    await inTheWay.opened;
    expect(String(seen)).toMatch(/all 1 connections/u);
    await lease.release();
    await (await waiting).release();
  });

  it('S3: has its connection again when nobody waits for the row any more', async () => {
    const [backend, other] = [connect({ poolSize: 1 }), connect()];
    const lease = await win('held', other);
    await backend.store.start?.();
    await expect(contract.contend(backend, 'held', { waitMs: 300 })).resolves.toBeNull();
    await (await contract.win(backend, 'free', { waitMs: 5_000, ttlMs: TTL_MS })).release();
    await lease.release();
  });

  it('refuses what can never work', () => {
    const sqlite = { options: { type: 'better-sqlite3', database: 'x' } } as const;
    expect(() => typeorm({ dataSource: sqlite, strategy: 'row' })).toThrow(/better-sqlite3 locks no single rows/u);
    expect(() => connect({ poolSize: 0 })).toThrow(LockConfigurationError);
    expect(() => rowManager({})).toThrow(LockConfigurationError);
  });
});
