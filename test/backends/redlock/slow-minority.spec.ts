import type { LockService } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually, type FaultProxy, timeLimitOf } from '../../support/index.js';
import { RedlockWorld, type WorldOptions } from './redlock-world.js';

const LATE_MS = 300;
/** Nothing in these tests takes so long, unless it waits for a silent node. */
const PATIENCE_MS = Math.min(timeLimitOf(5_000), 15_000);
const LONG_TTL_MS = 60_000;
const ROUNDS = 50;

describeWanted(['redlock'], '%s and a minority that is slow, or has just frozen', () => {
  let world: RedlockWorld;
  let proxies: readonly FaultProxy[];
  let service: LockService;
  afterEach(() => world.endTest());

  /** Behind proxies, with all its connections. */
  const connect = async (options: WorldOptions = {}): Promise<void> => {
    const { all, urls } = await world.proxies();
    proxies = all;
    service = world.service(
      { urls, requestTimeoutMs: PATIENCE_MS, ...options },
      { defaults: { ttlMs: LONG_TTL_MS }, maxHandOffs: 0 },
    );
    await service.withLock('warm-up', () => undefined);
    await eventually(() => expect(service.health.nodes?.every(({ status }) => status === 'up')).toBe(true));
    await eventually(async () => expect(await world.leases('warm-up')).toBe(0));
  };
  const nothingLeft = (key: string): Promise<void> =>
    eventually(async () => expect(await world.leases(key)).toBe(0), { withinMs: 10_000 });
  /** No node was given up, so nobody waited for its time-out. */
  const expectNoTimeout = (): void => expect(service.health.detail).toBeUndefined();

  describe('of three nodes,', () => {
    beforeAll(async () => {
      world = await RedlockWorld.start(3);
    });
    afterAll(() => world.stop());

    it('R5: a release is over before a node that is late has it, and the next owner gets the key at once', async () => {
      // The late node takes the votes, too.
      await connect({ maxSkewMs: 60_000 });
      // The look at all nodes, below, takes less also on a busy machine.
      const lateMs = PATIENCE_MS / 5;
      const other = world.service();
      await other.withLock('warm-up', () => undefined);
      const lock = await service.acquire('key');
      await eventually(async () => expect(await world.leases('key')).toBe(3));
      proxies[2]?.delay(lateMs);
      await lock.release();
      expect((await world.owners('key')).map((owner) => owner !== null)).toEqual([false, false, true]);
      const next = await other.acquire('key', { waitMs: 0 });
      await next.release();
      await nothingLeft('key');
      const since = performance.now();
      for (let round = 0; round < ROUNDS; round += 1) await service.withLock(`key-${round}`, () => undefined);
      const meanMs = (performance.now() - since) / ROUNDS;
      process.stdout.write(`  one of three nodes ${lateMs} ms late: withLock takes ${meanMs.toFixed(1)} ms\n`);
      expect(meanMs).toTakeLessThan(lateMs);
      for (let round = 0; round < ROUNDS; round += 1) await nothingLeft(`key-${round}`);
    });

    it('R5: a release does not wait for a node that has just frozen, which frees the key when it goes on', async () => {
      await connect();
      const lock = await service.acquire('key');
      await eventually(async () => expect(await world.leases('key')).toBe(3));
      await world.whileFrozen([2], async () => {
        const since = performance.now();
        await lock.release();
        await service.withLock('other', () => undefined);
        expectNoTimeout();
        const tookMs = performance.now() - since;
        process.stdout.write(
          `  one of three nodes has just frozen: release and withLock take ${tookMs.toFixed(1)} ms\n`,
        );
      });
      await nothingLeft('key');
      await nothingLeft('other');
    });

    it('the next lock of a process takes a late node that has the former one still', async () => {
      await connect();
      proxies[2]?.delay(LATE_MS);
      await service.withLock('key', () => undefined);
      await service.withLock('key', () => undefined);
      const lock = await service.acquire('key');
      await eventually(async () => expect(new Set(await world.owners('key')).size).toBe(1));
      expect(await world.leases('key')).toBe(3);
      await lock.release();
      await nothingLeft('key');
    });

    it('a service that closes waits for its releases on a late node', async () => {
      await connect();
      const lock = await service.acquire('key');
      await eventually(async () => expect(await world.leases('key')).toBe(3));
      proxies[2]?.delay(LATE_MS);
      await lock.release();
      await service.close();
      await expect(world.leases('key')).resolves.toBe(0);
      expectNoTimeout();
    });

    it('releases wait for a silent node again when a thousand are on their way to it', async () => {
      await connect({ requestTimeoutMs: 4 * PATIENCE_MS });
      proxies[2]?.pause('up');
      for (let round = 0; round < 1_000; round += 1) await service.withLock(`key-${round}`, () => undefined);
      const lock = await service.acquire('key');
      let isReleased = false;
      const release = lock.release().then(() => (isReleased = true));
      await eventually(async () => expect(await world.leases('key')).toBe(0));
      expect(isReleased).toBe(false);
      proxies[2]?.resume();
      await release;
      // Also where a release overtook its vote: what waits for a connection shares commands.
      await eventually(async () => expect((await world.operators[2]?.keys('redlock:{*}'))?.length).toBe(0));
      expectNoTimeout();
    });

    it('a look at a free key does not wait for a node that has just frozen', async () => {
      await connect();
      await world.whileFrozen([2], async () => {
        await expect(service.look('key')).resolves.toEqual({ key: 'key' });
        expectNoTimeout();
      });
    });
  });

  describe('of five nodes,', () => {
    beforeAll(async () => {
      world = await RedlockWorld.start(5);
    });
    afterAll(() => world.stop());

    it('a refusal does not wait until a node that freezes after its vote has given it back', async () => {
      await connect();
      await world.occupy('key', 'somebody', [0, 1, 2]);
      proxies[2]?.delay(LATE_MS);
      const requests: Buffer[] = [];
      proxies[4]?.onRequest((chunk) => {
        if (requests.push(chunk) === 2) proxies[4]?.pause('up');
      });
      await expect(service.tryAcquire('key')).resolves.toBeNull();
      expect((await world.owners('key'))[4]).not.toBeNull();
      expectNoTimeout();
      await eventually(() => expect(requests.length).toBeGreaterThan(1));
      proxies[4]?.resume();
      await eventually(async () =>
        expect(await world.owners('key')).toEqual(['somebody', 'somebody', 'somebody', null, null]),
      );
    });
  });
});
