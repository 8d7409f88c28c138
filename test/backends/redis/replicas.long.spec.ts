import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { askRedis, atLeastMs, eventually, FaultProxy, RedisServer } from '../../support/index.js';

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];

describe('a master and its replica', () => {
  let master: RedisServer;
  /** The way from the master to its replica. */
  let link: FaultProxy;
  let replica: RedisServer;
  let services: LockService[];

  beforeEach(async () => {
    services = [];
    master = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
    link = await FaultProxy.start(master);
    replica = await RedisServer.start({ args: ['--replicaof', '127.0.0.1', String(link.port)] });
    await eventually(async () => (await askRedis(replica.port, 'INFO replication')).includes('master_link_status:up'));
  });
  afterEach(async () => {
    link.resume();
    await Promise.all(services.map((service) => service.close(1_000)));
    await link.close();
    await Promise.all([master.stop(), replica.stop()]);
  });

  function locksOn({ url }: RedisServer, options: Partial<RedisOptions> = {}): LockService {
    const service = new LockService(redis({ url, ...options } as RedisOptions));
    services.push(service);
    return service;
  }

  const leasesOn = ({ port }: RedisServer) => askRedis(port, 'EXISTS lock:{key}');

  /** How much of the writes a server has. */
  const offset = async ({ port }: RedisServer) =>
    Number(/^(?:master|slave)_repl_offset:(?<at>\d+)/mu.exec(await askRedis(port, 'INFO replication'))?.groups?.at);

  it.each(MODES)(
    'R1: a failover loses what the replica had not got, and the next token is higher (%s)',
    async (mode) => {
      const forgotten = await locksOn(master, { mode }).withLock('key', ({ fencingToken }) => fencingToken);
      await eventually(async () => expect(await offset(replica)).toBe(await offset(master)));
      link.pause();
      const lost = await locksOn(master, { mode }).acquire('key', { ttlMs: 20_000 });
      await master.kill();
      await askRedis(replica.port, 'REPLICAOF NO ONE');
      const next = await locksOn(replica, { mode }).acquire('key', { waitMs: 0 });
      // This is what the word best-effort stands for: a moment with two holders, whom the tokens tell apart.
      expect([lost.isHeld, next.isHeld]).toEqual([true, true]);
      expect(lost.fencingToken).toBeGreaterThan(forgotten);
      expect(next.fencingToken).toBeGreaterThan(lost.fencingToken);
    },
  );

  describe.each(MODES)('with minReplicas: 1 (%s)', (mode) => {
    it('R1: refuses a lock that the replica did not get, as an error, and gives it back', async () => {
      const locks = locksOn(master, { mode, minReplicas: 1 });
      link.pause();
      const error: unknown = await locks.tryAcquire('key', { ttlMs: 20_000 }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockBackendError);
      expect(String(error)).toMatch(/only 0 of 1 replicas had it within 250 ms/);
      await eventually(async () => expect(await leasesOn(master)).toBe('0'));
    });

    it('R1: grants it once the replica has it, under the same owner', async () => {
      const locks = locksOn(master, { mode, minReplicas: 1 });
      link.pause();
      const waiting = locks.acquire('key', { ttlMs: 20_000, waitMs: 10_000 });
      await eventually(async () => expect(await leasesOn(master)).toBe('1'));
      link.resume();
      const lock = await waiting;
      expect(await leasesOn(replica)).toBe('1');
      await lock.release();
    });

    it('R1: has a renewal in jeopardy that the replica did not get', async () => {
      const locks = locksOn(master, { mode, minReplicas: 1 });
      const lock = await locks.acquire('key', { ttlMs: atLeastMs(3_000) });
      link.pause();
      await eventually(() => expect(lock.state).toBe('jeopardy'));
      link.resume();
      await eventually(() => expect(lock.state).toBe('held'));
      await lock.release();
    });
  });

  it('with minReplicas an acquisition is one command more, and none without', async () => {
    const waits = async (): Promise<number> => (await master.commandStats()).get('wait') ?? 0;
    const locks = locksOn(master);
    for (let i = 0; i < 10; i += 1) await locks.withLock('key', () => undefined);
    expect(await waits()).toBe(0);
    const careful = locksOn(master, { minReplicas: 1, requestTimeoutMs: 20_000 });
    for (let i = 0; i < 10; i += 1) await careful.withLock('key', () => undefined);
    expect(await waits()).toBe(10);
  });

  it('grants of one turn share what waits for the replicas', async () => {
    const waits = async (): Promise<number> => (await master.commandStats()).get('wait') ?? 0;
    const locks = locksOn(master, { minReplicas: 1, requestTimeoutMs: 20_000 });
    await locks.withLock('warm-up', () => undefined);
    const before = await waits();
    const held = await Promise.all(Array.from({ length: 100 }, (_, i) => locks.acquire(`key-${i}`)));
    expect((await waits()) - before).toBe(1);
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('a replica that says nothing does not look like a master that says nothing, whoever asks', async () => {
    const details: (string | undefined)[] = [];
    const locks = new LockService(redis({ url: master.url, minReplicas: 1 }), {
      observers: [{ healthChanged: ({ status, detail }) => details.push(status === 'down' ? detail : status) }],
    });
    services.push(locks);
    // On a busy machine the replica may be late at first.
    await eventually(() => locks.withLock('warm-up', () => undefined));
    await eventually(() => expect(locks.health.status).toBe('up'));
    details.length = 0;
    link.pause();
    const asked = Array.from({ length: 20 }, (_, i) => locks.acquire(`key-${i}`, { waitMs: 3_000 }));
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([]);
    // Nobody can get a lock, and the health says why. The connection to the master stays.
    expect(details).toEqual([expect.stringContaining('of 1 replicas had it within')]);
  });

  it('a master that needs no replica to write is something to change, by its health', async () => {
    const locks = locksOn(master);
    await locks.withLock('key', () => undefined);
    await eventually(() => expect(locks.health).toMatchObject({ status: 'up', detail: /min-replicas-to-write 1/ }));
    await askRedis(master.port, 'CONFIG SET min-replicas-to-write 1');
    const afterwards = locksOn(master);
    await afterwards.withLock('key', () => undefined);
    await eventually(async () => expect((await master.commandStats()).get('info')).toBeGreaterThanOrEqual(4));
    expect(afterwards.health).toEqual({ status: 'up' });
  });
});
