import { jest } from '@jest/globals';
import { Deadline, LockConfigurationError } from 'nestjs-distributed-lock/core';
import { atLeastMs, eventually, failureOf, handled, throughout, timeLimitOf } from '../../support/index.js';
import { describeServers } from './sql-world.js';

const LONG_TTL_MS = 20_000;

describeServers('lease rows', (world, type) => {
  afterEach(() => void jest.restoreAllMocks());

  const millisLeft =
    type === 'postgres'
      ? 'extract(epoch from expires_at - clock_timestamp()) * 1000'
      : 'timestampdiff(microsecond, utc_timestamp(6), expires_at) / 1000';

  it.each([1, -1])('S1: a wall clock of the client that is %i h off changes nothing', async (hours) => {
    const now = Date.now.bind(Date);
    jest.spyOn(Date, 'now').mockImplementation(() => now() + hours * 3_600_000);
    const [ours, theirs] = [world.service(), world.service()];
    const lock = await ours.acquire('S1', { ttlMs: 60_000 });
    const [row] = await world.ask(`select ${millisLeft} as remaining from distributed_lock where lock_key = 'S1'`);
    expect(Number(row?.['remaining'])).toBeGreaterThan(30_000);
    expect(Number(row?.['remaining'])).toBeLessThanOrEqual(60_000);
    await expect(theirs.tryAcquire('S1')).resolves.toBeNull();
    await lock.release();
  });

  it('S1: a time zone of the server or the session changes nothing', async () => {
    const zone =
      type === 'postgres' ? `alter database postgres set timezone to '+11'` : `set global time_zone = '+11:00'`;
    const lock = await world.service().acquire('zone', { ttlMs: 60_000 });
    await world.ask(zone);
    await expect(world.service().tryAcquire('zone')).resolves.toBeNull();
    await lock.release();
    await world.ask(zone.replace('+11:00', 'SYSTEM').replace('+11', 'UTC'));
  });

  it('S12: says that the table is missing, and what to do, without waiting', async () => {
    const service = world.service({ tableName: 'no_such_table', synchronize: false });
    const error = await failureOf(service.acquire('k', { waitMs: 60_000 }));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error)).toMatch(/no_such_table.*CreateDistributedLock1760000000000/u);
  });

  it('S12: names the column when the table has another shape', async () => {
    await world.ask('create table other_shape (lock_key varchar(50), owner varchar(50), token bigint)');
    const service = world.service({ tableName: 'other_shape' });
    await expect(failureOf(service.acquire('k'))).resolves.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      message: expect.stringContaining('expires_at'),
    });
  });

  it('S12: a table dropped under the locks is told, and used again once it is back', async () => {
    const service = world.service({ tableName: 'comes_and_goes' });
    await (await service.acquire('k')).release();
    const strict = world.service({ tableName: 'comes_and_goes', synchronize: false });
    await (await strict.acquire('k')).release();
    await world.ask('drop table comes_and_goes');
    await expect(failureOf(strict.acquire('k'))).resolves.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    await (await service.acquire('k')).release();
    await eventually(async () => (await strict.acquire('k')).release());
  });

  it('S12: eight processes may create the table at once', async () => {
    const services = Array.from({ length: 8 }, () => world.service({ tableName: 'created_by_many' }));
    const locks = await Promise.all(services.map((service, place) => service.acquire(`k${place}`)));
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('S13: what stands in a key or a label is never read as SQL', async () => {
    const evil = `'; drop table distributed_lock; -- \\'; drop table distributed_lock; --`;
    if (type === 'mariadb') await world.ask(`set global sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'`);
    const [ours, theirs] = [world.service({ locks: { label: evil } }), world.service()];
    const lock = await ours.acquire(evil, { ttlMs: LONG_TTL_MS });
    await expect(failureOf(theirs.acquire(evil, { waitMs: 0 }))).resolves.toMatchObject({ holder: { label: evil } });
    await lock.release();
    if (type === 'mariadb') await world.ask(`set global sql_mode = default`);
  });

  it('keeps keys of up to 4,096 bytes apart that begin alike, and shows how they begin', async () => {
    const service = world.service();
    const long = (end: string) => `sale/${'\u4f60'.repeat(1_300)}${end}`;
    const keys = [long(''), long('a'), long('A'), long('a '), long('\0'), 'x'.repeat(4_096), 'x'.repeat(4_095)];
    const locks = [];
    for (const key of keys) locks.push(await service.tryAcquire(key, { ttlMs: LONG_TTL_MS }));
    expect(locks).not.toContain(null);
    const shown = await world.ask(`select count(*) as n from distributed_lock where lock_key like 'sale/%sha256:%'`);
    expect(Number(shown[0]?.['n'])).toBe(5);
    for (const lock of locks) await lock?.release();
  });

  it('does not take the stored form of a long key for that key', async () => {
    const service = world.service();
    const lock = await service.acquire('y'.repeat(2_000), { ttlMs: LONG_TTL_MS });
    const asText = type === 'postgres' ? 'lock_key' : 'convert(lock_key using utf8mb4)';
    const rows = await world.ask(`select ${asText} as k from distributed_lock where lock_key like 'yyy%'`);
    const forged = await service.tryAcquire(String(rows[0]?.['k']));
    expect(forged).not.toBeNull();
    await forged?.release();
    await lock.release();
  });

  it('reaps rows that were idle for long, and no other', async () => {
    const service = world.service({ reapIdleAfterMs: 100, tableName: 'reaped' });
    const held = await service.acquire('held', { ttlMs: LONG_TTL_MS });
    await (await service.acquire('idle')).release();
    const dead = world.service({ tableName: 'reaped' });
    await (await dead.acquire('idle')).release();
    await dead.backend.acquire('dead', {
      owner: 'nobody renews it',
      ttlMs: 300,
      deadline: Deadline.after(0),
      metadata: { host: 'gone', pid: 1 },
    });
    await eventually(async () => {
      const rows = await world.ask('select lock_key from reaped');
      expect(rows.map((row) => String(row['lock_key']))).toEqual(['held']);
    });
    expect(held.isHeld).toBe(true);
    await held.release();
  });

  it('reaps all idle rows in one round, however many', async () => {
    const [table, intervalMs] = ['reaped_at_once', 3_000];
    await (await world.service({ tableName: table }).acquire('the first')).release();
    const old = type === 'postgres' ? `now() - interval '1 day'` : 'utc_timestamp(6) - interval 1 day';
    const numbers = type === 'postgres' ? 'generate_series(1, 2500) as seq' : 'seq_1_to_2500';
    const columns = 'lock_key, token, expires_at, acquired_at';
    await world.ask(`insert into ${table} (${columns}) select seq, 1, ${old}, ${old} from ${numbers}`);
    world.service({ reapIdleAfterMs: intervalMs, tableName: table });
    const rows = async () => Number((await world.ask(`select count(*) as n from ${table}`))[0]?.['n']);
    // The first one may have been free for too short a time.
    await eventually(async () => expect(await rows()).toBeLessThan(2), { withinMs: 2 * intervalMs });
  });

  it('lists held keys by pages, and none of which it keeps the beginning alone', async () => {
    const service = world.service({ tableName: 'listed' });
    await using _long = await service.acquire('long'.repeat(200));
    const [now, later, numbers] =
      type === 'postgres'
        ? ['now()', `now() + interval '1 day'`, 'generate_series(1, 2500) as seq']
        : ['utc_timestamp(6)', 'utc_timestamp(6) + interval 1 day', 'seq_1_to_2500'];
    const columns = 'lock_key, owner, token, expires_at, acquired_at';
    await world.ask(`insert into listed (${columns}) select seq, 'o', 1, ${later}, ${now} from ${numbers}`);
    const keys = new Set<string>();
    for await (const key of service.keys()) keys.add(key);
    expect(keys).toEqual(new Set(Array.from({ length: 2_500 }, (_, index) => String(index + 1))));
  });

  it('works with SELECT, INSERT and UPDATE on its table alone, and DELETE for the reaper', async () => {
    const rights = 'select, insert, update, delete on distributed_lock';
    const grants =
      type === 'postgres'
        ? [`create role clerk login password 'secret'`, `grant ${rights.replace(', delete', '')} to clerk`]
        : [
            `create user clerk identified by 'secret'`,
            `grant ${rights.replace(', delete', '').replace(' on ', ' on test.')} to clerk`,
          ];
    for (const grant of grants) await world.ask(grant);
    const url = world.urlOf({ username: 'clerk', password: 'secret' });
    const [ours, theirs] = [world.service({ url, synchronize: false }), world.service({ url, synchronize: false })];
    const ttlMs = atLeastMs(2_000);
    for (const key of ['clerk', 'clerk']) {
      const lock = await ours.acquire(key, { ttlMs });
      const waiting = handled(theirs.acquire(key, { waitMs: timeLimitOf(10_000) }));
      await throughout(ttlMs * 1.1, () => expect(lock.isHeld).toBe(true));
      await expect(theirs.keys().next()).resolves.toMatchObject({ value: key });
      await expect(theirs.evict(key)).resolves.toMatchObject({ pid: process.pid });
      await lock.release();
      await (await waiting).release();
    }
    const [grant = ''] = [grants[1]].map((one) => one?.replace('select, insert, update', 'delete'));
    const reaping = world.service({ url, synchronize: false, reapIdleAfterMs: 50 });
    const rows = async () => (await world.ask(`select 1 from distributed_lock where lock_key = 'clerk'`)).length;
    expect(await rows()).toBe(1);
    await world.ask(grant);
    await eventually(async () => expect(await rows()).toBe(0));
    expect(reaping.health.status).toBe('up');
  });
});
