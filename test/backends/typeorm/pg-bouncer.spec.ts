import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { rowManager } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import {
  closeAfterEach,
  connectBackend,
  describeWanted,
  eventually,
  SLACK_MS,
  type SqlOptions,
  timeLimitOf,
} from '../../support/index.js';
import { PgBouncer } from '../../servers/pg-bouncer.js';
import { sqlHarness } from './harness.js';

const LONG_TTL_MS = 20_000;

/** Settings that the application's connections must find unchanged. */
const SETTINGS = `select current_setting('statement_timeout') as statement_timeout,
  current_setting('default_transaction_isolation') as isolation, current_setting('idle_session_timeout') as idle,
  (select count(*) from pg_listening_channels()) as channels,
  (select count(*) from pg_locks where locktype = 'advisory') as locks`;
const UNTOUCHED = { statement_timeout: '0', isolation: 'repeatable read', idle: '1h', channels: '0', locks: '0' };

describeWanted(['postgres'], 'S6: behind PgBouncer in transaction mode', () => {
  const harness = sqlHarness('postgres');
  let bouncer: PgBouncer;
  let application: DataSource;
  const keep = closeAfterEach();

  beforeAll(async () => {
    await harness.start();
    await harness.ask(`alter database postgres set default_transaction_isolation = 'repeatable read'`);
    await harness.ask(`alter database postgres set idle_session_timeout = '1h'`);
    // All of its clients share one connection: what one leaves behind, the next one finds.
    bouncer = await PgBouncer.start(harness.server());
    application = await new DataSource({ ...harness.dataSource(bouncer), poolSize: 1 }).initialize();
    await application.query('create table stock (remaining integer not null)');
    await application.query('insert into stock values (100)');
  });
  afterEach(async () => {
    await expect(application.query(SETTINGS)).resolves.toEqual([UNTOUCHED]);
  });
  afterAll(async () => {
    await application.destroy();
    await bouncer[Symbol.asyncDispose]();
    await harness.stop();
  });

  const service = async (options: SqlOptions = {}): Promise<LockService> =>
    keep(new LockService(await connectBackend({ ...harness.connection(bouncer), options })));

  it('sessions refuse to lock, at once', async () => {
    const locks = await service({ strategy: 'session' });
    const since = performance.now();
    await expect(locks.acquire('k', { waitMs: 60_000 })).rejects.toThrow(LockConfigurationError);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_000));
    await expect(locks.acquire('k')).rejects.toThrow(/PgBouncer/u);
  });

  it('leases work, and whoever waits has the key soon after its release', async () => {
    const [ours, theirs] = [await service(), await service()];
    const lock = await ours.acquire('lease', { ttlMs: LONG_TTL_MS });
    await expect(theirs.tryAcquire('lease')).resolves.toBeNull();
    const waiting = theirs.acquire('lease', { ttlMs: LONG_TTL_MS });
    await eventually(() => theirs.health.status === 'up');
    const since = performance.now();
    await lock.release();
    const next = await waiting;
    expect(performance.now() - since).toTakeLessThan(SLACK_MS);
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await next.release();
  });

  it('3 × 20 callers never meet, with leases and with rows', async () => {
    await using many = await PgBouncer.start(harness.server(), 10);
    for (const strategy of ['lease', 'row'] as const) {
      const connection = { ...harness.connection(many), options: { strategy } };
      let inside = 0;
      let most = 0;
      const tokens: bigint[] = [];
      const crowd = async (): Promise<void> => {
        await using locks = new LockService(await connectBackend(connection));
        const visit = () =>
          locks.withLock(
            strategy,
            async ({ fencingToken }) => {
              most = Math.max(most, ++inside);
              tokens.push(fencingToken);
              await new Promise(setImmediate);
              inside -= 1;
            },
            { waitMs: 60_000 },
          );
        await Promise.all(Array.from({ length: 20 }, visit));
      };
      await Promise.all([crowd(), crowd(), crowd()]);
      expect(most).toBe(1);
      expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
      expect(new Set(tokens).size).toBe(60);
    }
  });

  it('rows lock, commit, and are freed by the end of their holder', async () => {
    await using many = await PgBouncer.start(harness.server(), 10);
    const connect = async () =>
      new LockService(await connectBackend({ ...harness.connection(many), options: { strategy: 'row' } }));
    await using theirs = await connect();
    const ours = await connect();
    await ours.withLock('row', (lock) => rowManager(lock).query('update stock set remaining = remaining - 1'));
    expect(await harness.ask('select remaining from stock')).toEqual([{ remaining: 99 }]);
    const lock = await ours.acquire('row', { ttlMs: LONG_TTL_MS });
    await expect(theirs.tryAcquire('row')).resolves.toBeNull();
    const waiting = theirs.acquire('row', { ttlMs: LONG_TTL_MS, waitMs: 10_000 });
    await ours.backend.close();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    expect(lock.isHeld).toBe(false);
    await next.release();
    await ours.close();
  });
});
