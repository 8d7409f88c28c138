import { LockBackendError, LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import {
  aborted,
  closeAfterEach,
  describeWanted,
  eventually,
  failureOf,
  FaultProxy,
  type Listener,
  SLACK_MS,
} from '../../support/index.js';
import { atLeastMs, timeLimitOf } from '../../support/machine.js';
import { DatabaseError } from '../../../lib/backends/sql/connections/database-error.js';
import { OwnConnection } from '../../../lib/backends/sql/connections/own-connection.js';
import { createDataSourceDatabase } from '../../../lib/backends/typeorm/data-source-database.js';
import { sqlHarness } from './harness.js';
import type { SessionBackendOptions } from '../../../lib/backends/sql/session/session-backend.js';
import { getAdvisoryLockId } from '../../../lib/backends/sql/tables/session-lock-name.js';

/** Whole seconds, as MariaDB has them. */
const SESSION_MS = Math.ceil(atLeastMs(1_000) / 1_000) * 1_000;

const BUSY = {
  postgres: `do $$ begin raise exception using errcode = '40001'; end $$`,
  mariadb: `signal sqlstate '40001' set mysql_errno = 1213`,
};

const OUR_SESSIONS = {
  postgres: `select count(*) as sessions from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  mariadb: 'select count(*) as sessions from information_schema.processlist where id <> connection_id()',
};

describeWanted(['postgres-session', 'mariadb-session'], '%s', (name) => {
  const harness = sqlHarness(name);
  const { type } = harness;
  const keep = closeAfterEach();

  beforeAll(() => harness.start());
  afterAll(() => harness.stop());

  const open = (options: SessionBackendOptions, through?: Listener): LockService => {
    const dataSource = { options: harness.dataSource(through) };
    const backend = typeorm({ dataSource, strategy: 'session', synchronize: true, ...options });
    return keep(new LockService(backend));
  };
  const service = (sessionTtlMs = SESSION_MS): LockService => open({ sessionTtlMs });
  const sessions = async (): Promise<number> => Number((await harness.ask(OUR_SESSIONS[type]))[0]?.sessions);

  it('S4: a killed session is told at once, for every key that it had, long before the TTL', async () => {
    const ours = service(20_000);
    const locks = await Promise.all(Array.from({ length: 50 }, (_, i) => ours.acquire(`many-${i}`)));
    expect(await sessions()).toBe(1);
    const told = Promise.all(locks.map((lock) => aborted(lock.signal)));
    const killedAt = performance.now();
    await harness.revoke('many-7');
    expect(Math.max(...(await told)) - killedAt).toTakeLessThan(SLACK_MS);
    expect(locks.map(({ isHeld }) => isHeld)).not.toContain(true);
    expect(locks[7]?.signal.reason).toMatchObject({ reason: 'revoked' });
    const again = await ours.acquire('many-7');
    expect(again.fencingToken).toBeGreaterThan(locks[7]?.fencingToken ?? 0n);
    await again.release();
  });

  it('needs one connection, which the server ends when it is not used, and which comes back without an error', async () => {
    // Long enough to be counted before its end.
    const ours = service(Math.max(3_000, SESSION_MS));
    // The server may still be ending those of the test before.
    await eventually(async () => expect(await sessions()).toBe(0));
    await (await ours.acquire('idle')).release();
    expect(await sessions()).toBe(1);
    await eventually(async () => expect(await sessions()).toBe(0));
    await eventually(() => ours.health.status === 'idle');
    await (await ours.acquire('idle', { waitMs: 0 })).release();
  });

  it('asks for no lock on a session that opens after its caller has given up: nobody would give it back', async () => {
    await (await service().acquire('the table is there')).release();
    const proxy = await FaultProxy.start(harness.server());
    const ours = open({ sessionTtlMs: 20_000, requestTimeoutMs: timeLimitOf(300), patienceMs: 20_000 }, proxy);
    proxy.pause('down');
    await expect(failureOf(ours.tryAcquire('late'))).resolves.toBeInstanceOf(LockBackendError);
    proxy.resume();
    // A session sends one statement after the other, and the late one would be before this.
    await (await ours.acquire('next', { waitMs: 20_000 })).release();
    await expect(harness.leftovers('late')).resolves.toEqual([]);
    await ours.close();
    await proxy.close();
  });

  it('S2: takes no database that is busy for one that is silent, and so keeps the session', async () => {
    const settings = { database: createDataSourceDatabase(harness.dataSource()), connectTimeoutMs: 20_000 };
    const onOpen = (): Promise<void> => Promise.resolve();
    const requestTimeoutMs = timeLimitOf(500);
    const connection = new OwnConnection({ ...settings, requestTimeoutMs, onOpen }, () => undefined);
    await connection.open();
    await expect(connection.query(BUSY[type], [])).rejects.toBeInstanceOf(DatabaseError);
    const { idleMs } = connection;
    await connection.close();
    expect(idleMs).toTakeLessThan(requestTimeoutMs);
  });

  it('S12: says what to do when the table is missing, and that it has no such locks on SQLite', async () => {
    const without = open({ tableName: 'no_such_table', synchronize: false });
    await expect(without.acquire('k')).rejects.toThrow(/no_such_table.*CreateDistributedLock/u);
    const sqlite = { options: { type: 'better-sqlite3', database: 'x' } } as const;
    expect(() => typeorm({ dataSource: sqlite, strategy: 'session' })).toThrow(
      /better-sqlite3 has no locks of sessions/u,
    );
    expect(() => open({ sessionTtlMs: 0 })).toThrow(LockConfigurationError);
  });
});

describe('keys of sessions', () => {
  it('S7: a million names have a million 64-bit ids', () => {
    const ids = new Set<bigint>();
    for (let i = 0; i < 1_000_000; i += 1) ids.add(getAdvisoryLockId('scope', `lock_sale_${i}`));
    expect(ids.size).toBe(1_000_000);
  });
});
