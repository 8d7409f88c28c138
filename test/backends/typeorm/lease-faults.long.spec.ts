import { setMaxListeners } from 'node:events';
import { LockBackendError, type LockService } from 'nestjs-distributed-lock/core';
import { eventually, failureOf, handled, Holder, serverToken, SLACK_MS, throughout } from '../../support/index.js';
import { atLeastMs, timeLimitOf } from '../../support/machine.js';
import { describeServers } from './sql-world.js';

const LONG_TTL_MS = 20_000;
/** Keys that one process waits for: as many as a database can be asked for every few seconds, on a slow machine fewer. */
const CROWD = Math.ceil(400 / (timeLimitOf(1_000) / 1_000));

/** Whether a database on this machine may get no processor for longer than it takes waiters to call it silent. */
const IS_STARVED = timeLimitOf(1_000) >= 5_000;

const SQL = {
  postgres: {
    acquire: 'insert_into_distributed_lock',
    acquireNew: 'insert_into_distributed_lock',
    kill: "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'",
    connections: `select count(*) as n from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    readOnly: `alter database postgres set default_transaction_read_only = on`,
    writable: `alter database postgres reset default_transaction_read_only`,
  },
  mariadb: {
    acquire: 'update `distributed_lock` set',
    acquireNew: 'insert ignore into `distributed_lock`',
    kill: `select id from information_schema.processlist where id <> connection_id() and user = 'root'`,
    connections: `select count(*) as n from information_schema.processlist where id <> connection_id() and user = 'root'`,
    readOnly: `set global read_only = 1`,
    writable: `set global read_only = 0`,
  },
} as const;

describeServers('lease faults', (world, type) => {
  const sql = SQL[type];

  const killConnections = async (): Promise<void> => {
    const rows = await world.ask(sql.kill);
    if (type === 'mariadb') for (const { id } of rows) await world.ask(`kill ${String(id)}`).catch(() => undefined);
  };
  const tokenOf = async (key: string): Promise<bigint> => {
    const rows = await world.ask(
      `select cast(token as char(20)) as token from distributed_lock where lock_key = '${key}'`,
    );
    return BigInt(String(rows[0]?.['token']).trim());
  };

  it('S3: 300 waiters for 30 keys hold no connection, and do not delay renewals', async () => {
    const [holder, crowd] = [world.service(), world.service()];
    const keys = Array.from({ length: 30 }, (_, place) => `S3-${place}`);
    const ttlMs = atLeastMs(2_000);
    const locks = await Promise.all(keys.map((key) => holder.acquire(key, { ttlMs })));
    const over = new AbortController();
    setMaxListeners(0, over.signal);
    const waits = Array.from({ length: 10 }, () => keys)
      .flat()
      .map((key) => handled(crowd.acquire(key, { waitMs: Infinity, signal: over.signal })));
    await throughout(2 * ttlMs, () => expect(locks.filter(({ isHeld }) => !isHeld)).toHaveLength(0));
    const [row] = await world.ask(sql.connections);
    expect(Number(row?.['n'])).toBeLessThanOrEqual(2 * 3);
    over.abort(new Error('enough'));
    await Promise.allSettled(waits);
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('S3: a process that waits for hundreds of keys is told that they are held, and keeps those that it holds', async () => {
    const [holder, crowd] = [world.service(), world.service()];
    const lost: string[] = [];
    const hold = async (service: LockService, count: number, ttlMs: number) =>
      Promise.all(Array.from({ length: count }, (_, n) => service.acquire(`S3-${ttlMs}-${n}`, { ttlMs })));
    const awaited = await hold(holder, CROWD, 60_000);
    const held = await hold(crowd, 50, 2_000);
    for (const { key, signal } of held) signal.addEventListener('abort', () => lost.push(key));
    const waits = awaited.map(({ key }) => failureOf(crowd.acquire(key, { waitMs: 5_000 })));
    const failures = new Map<string, number>();
    for (const error of await Promise.all(waits)) {
      const { name, cause } = error as Error;
      const failure = cause instanceof Error ? `${name}: ${cause.message}` : name;
      failures.set(failure, (failures.get(failure) ?? 0) + 1);
    }
    if (IS_STARVED) failures.delete('LockBackendError: no answer before the deadline');
    expect([...failures.keys()]).toEqual(['LockTimeoutError']);
    expect(lost).toEqual([]);
    expect(crowd.health.status).toBe('up');
    await Promise.all([...awaited, ...held].map((lock) => lock.release()));
  });

  it('S4: killed connections lose nothing: jeopardy, safe, and the next request does not notice', async () => {
    const events: string[] = [];
    const note = (name: string) => () => void events.push(name);
    const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
    const service = world.service({ locks: { observers } });
    const lock = await service.acquire('S4', { ttlMs: LONG_TTL_MS });
    for (let round = 0; round < 3; round += 1) {
      await killConnections();
      await (await service.acquire(`S4-${round}`)).release();
    }
    await eventually(() => expect(lock.state).toBe('held'));
    await expect(world.service().tryAcquire('S4')).resolves.toBeNull();
    await lock.release();
    await eventually(() => service.health.status === 'up');
    expect(events).not.toContain('lost');
  });

  it('S4: a connection that is idle for longer than the server likes is kept', async () => {
    const [impatient, patient] =
      type === 'postgres'
        ? [
            `alter database postgres set idle_session_timeout = '300ms'`,
            `alter database postgres reset idle_session_timeout`,
          ]
        : ['set global wait_timeout = 1', 'set global wait_timeout = default'];
    await world.ask(impatient);
    const changes: string[] = [];
    const observers = [{ healthChanged: ({ status }: { status: string }) => changes.push(status) }];
    const service = world.service({ locks: { observers } });
    await (await service.acquire('idle')).release();
    await world.ask(patient);
    await throughout(1_500, () => expect(changes).toEqual(['up']));
  });

  it('S5: reply of acquire lost: the same grant, at once', async () => {
    const service = await world.proxied();
    for (const [key, request] of [
      ['S5-new', sql.acquireNew],
      ['S5-new', sql.acquire],
    ] as const) {
      const lost = world.proxy.dropReplyAfter(request);
      const since = performance.now();
      const lock = await service.tryAcquire(key, { ttlMs: LONG_TTL_MS });
      await lost;
      expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_000));
      expect(lock?.isHeld).toBe(true);
      expect(serverToken(lock?.fencingToken ?? 0n)).toBe(await tokenOf(key));
      await lock?.release();
      await expect(world.harness.leftovers(key)).resolves.toEqual([]);
    }
  });

  it('S14: a server that takes no writes is an error, and told from a key that is taken', async () => {
    await world.ask(type === 'postgres' ? `create role reader login` : `create user reader`);
    const everything = type === 'postgres' ? 'distributed_lock' : 'test.distributed_lock';
    await world.ask(`grant select, insert, update on ${everything} to reader`);
    const service = world.service({ url: world.urlOf({ username: 'reader' }), synchronize: false });
    await (await service.acquire('S14')).release();
    await world.ask(sql.readOnly);
    await killConnections();
    const error = await failureOf(service.tryAcquire('S14'));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(String(error)).toMatch(/read.only/u);
    await world.ask(type === 'postgres' ? `begin read write; ${sql.writable}; commit` : sql.writable);
    await eventually(async () => (await service.acquire('S14')).release());
  });

  it('S14: a statement that is not answered in time ends its connection, and the next one opens another', async () => {
    const requestTimeoutMs = timeLimitOf(200);
    const service = await world.proxied({ requestTimeoutMs });
    world.proxy.pause();
    const since = performance.now();
    const error = await failureOf(service.tryAcquire('silent'));
    expect(performance.now() - since).toTakeLessThan(2 * requestTimeoutMs + SLACK_MS);
    expect(error).toBeInstanceOf(LockBackendError);
    expect(service.health.status).toBe('down');
    world.proxy.resume();
    await eventually(() => service.health.status === 'up');
    await (await service.acquire('silent', { waitMs: 5_000 })).release();
  });

  it('a process ends by itself although the server is frozen, with one lock held and another awaited', async () => {
    await using holder = await Holder.start({ backend: type, url: world.url });
    await holder.acquire('frozen', { ttlMs: LONG_TTL_MS });
    const other = world.service();
    const taken = await other.acquire('frozen-awaited', { ttlMs: LONG_TTL_MS });
    const waiting = holder.acquire('frozen-awaited', { waitMs: LONG_TTL_MS }).catch(() => 'given up');
    const thaw = await world.harness.freeze?.();
    const since = performance.now();
    await holder.close();
    await expect(holder.exit()).resolves.toEqual({ code: 0, signal: null });
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(10_000));
    expect(holder.child.stderr).toBe('');
    await expect(waiting).resolves.toBe('given up');
    await thaw?.();
    await taken.release();
  });

  it('a server that is gone is an error at once, and used again when it is back', async () => {
    const service = world.service();
    await (await service.acquire('gone')).release();
    await world.harness.server().kill();
    await eventually(() => service.health.status === 'down');
    const since = performance.now();
    await expect(failureOf(service.tryAcquire('gone'))).resolves.toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toTakeLessThan(SLACK_MS);
    await world.harness.restart?.({ empty: false });
    await eventually(() => service.health.status === 'up');
    await (await service.acquire('gone')).release();
  });

  it('a server that was never there is an error, and closing ends the search for it', async () => {
    const service = world.service({ url: world.urlOf({ port: 1 }) });
    await expect(failureOf(service.tryAcquire('k'))).resolves.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    await service.close();
  });
});
