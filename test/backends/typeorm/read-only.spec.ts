import { chmodSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { geteuid, seteuid } from 'node:process';
import { LockBackendError, LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { fromPg, lockIn } from 'nestjs-distributed-lock/sql';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { Client } from 'pg';
import {
  closeAfterEach,
  describeWanted,
  eventually,
  failureOf,
  TemporaryDirectory,
  throughout,
} from '../../support/index.js';
import { describeServers, SqlWorld } from './sql-world.js';

const ADVICE = /locks need a database that takes writes, and not a replica or one that is read-only/u;
const STRATEGIES = ['lease', 'row', 'session'] as const;

describeServers('S14: a server that takes no writes', (world, type) => {
  const [on, off] =
    type === 'postgres'
      ? [`alter role postgres set default_transaction_read_only = on`, `alter role postgres reset all`]
      : ['set global read_only = 1', 'set global read_only = 0'];

  it.each(STRATEGIES)('is told when locking starts, and until it takes them: %s', async (strategy) => {
    await world.ask(on);
    const failures: unknown[] = [];
    const observers = [{ backendFailed: ({ error }: { error: unknown }) => failures.push(error) }];
    const service = world.service({ strategy, synchronize: false, locks: { observers } });
    await service.start();
    expect(String(failures[0])).toMatch(ADVICE);
    await throughout(300, () =>
      expect(service.health).toMatchObject({ status: 'down', detail: expect.stringMatching(ADVICE) }),
    );
    const error = await failureOf(service.tryAcquire('k'));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(String(error)).toMatch(ADVICE);
    await world.ask(type === 'postgres' ? `begin read write; ${off}; commit` : off);
    await eventually(() => service.health.status === 'up', { withinMs: 5_000 });
    await (await service.acquire('k')).release();
  });
});

/** A hot standby, which has all the data and all the rights. */
describeWanted(['postgres'], 'S14: a replica of PostgreSQL', (type) => {
  const world = SqlWorld.shared(type);

  it('has no locks to give, and has them when it is promoted', async () => {
    const server = world.harness.server();
    if (!('directory' in server)) throw new Error('no data directory');
    const used = world.service();
    const lock = await used.acquire('k', { ttlMs: 60_000 });
    await server.kill();
    writeFileSync(join(server.directory, 'data/standby.signal'), '');
    await server.restart({ empty: false });
    expect(await world.ask('select pg_is_in_recovery() as replica')).toEqual([{ replica: true }]);
    const client = new Client({ connectionString: world.url });
    await client.connect();
    await client.query('begin');
    await expect(lockIn(fromPg(client), 'k')).rejects.toThrow('needs the primary: this transaction runs on a standby');
    await client.end();
    const service = world.service({ synchronize: false });
    expect(String(await failureOf(service.tryAcquire('other')))).toMatch(ADVICE);
    await expect(failureOf(used.tryAcquire('other'))).resolves.toBeInstanceOf(LockBackendError);
    await world.ask('select pg_promote()');
    await eventually(() => service.health.status === 'up', { withinMs: 10_000 });
    await expect(service.tryAcquire('k')).resolves.toBeNull();
    await lock.release();
  });
});

describeWanted(['sqlite'], 'S11: a %s file that takes no writes', () => {
  const driver: unknown = createRequire(import.meta.url)('libsql');
  const keep = closeAfterEach();
  const directory = TemporaryDirectory.shared('read-only');
  beforeAll(() => chmodSync(directory, 0o755));

  const service = (file: string, more: object = {}): LockService => {
    const options = { type: 'better-sqlite3', driver, database: join(directory, file) } as const;
    const dataSource = { options: Object.assign(options, more) };
    return keep(new LockService(typeorm({ dataSource, synchronize: true, patienceMs: 100 })));
  };

  it('by its mode: an error that says so, at the start too, and no longer when the mode is changed', async () => {
    await (await service('mode.db').acquire('k')).release();
    chmodSync(join(directory, 'mode.db'), 0o444);
    const reader = service('mode.db');
    const user = geteuid?.() ?? 0;
    // Modes mean nothing to root.
    if (user === 0) seteuid?.(65_534);
    try {
      await reader.start();
      expect(reader.health).toMatchObject({ status: 'down', detail: expect.stringMatching(ADVICE) });
      const error = await failureOf(reader.tryAcquire('k'));
      expect(error).toBeInstanceOf(LockBackendError);
      expect(String(error)).toMatch(ADVICE);
    } finally {
      seteuid?.(user);
    }
    chmodSync(join(directory, 'mode.db'), 0o644);
    await eventually(() => reader.health.status === 'up', { withinMs: 5_000 });
    await (await reader.acquire('k')).release();
  });

  it('by its options: refused where they are given', () => {
    expect(() => service('options.db', { readonly: true })).toThrow('opened readonly takes no locks');
  });

  it('because the disk is full: an error that says so, nothing left behind, and a key that is held can be freed', async () => {
    const pages = { prepareDatabase: (db: { pragma(text: string): unknown }) => db.pragma(`max_page_count = 8`) };
    const full = service('full.db', pages);
    const lock = await full.acquire('first', { ttlMs: 60_000 });
    const keys = Array.from({ length: 60 }, (_, place) => `${place}-${'x'.repeat(1_000)}`);
    let error: unknown;
    for (const key of keys) {
      const other = await full.tryAcquire(key, { ttlMs: 60_000 }).catch((failure: unknown) => (error ??= failure));
      if (other instanceof LockHandle) await other.release();
    }
    expect(error).toBeInstanceOf(LockBackendError);
    expect(String(error)).toContain('database or disk is full');
    await lock.release();
    const other = service('full.db');
    await (await other.acquire('first')).release();
    for (const key of keys) await (await other.acquire(key)).release();
  });
});
