import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { aborted, throughout } from '../../conformance/contract.js';
import { eventually } from '../../support/eventually.js';
import { wantedOf } from '../describe-backend.js';
import { EtcdWorld } from './etcd-world.js';

/** A third of it, after which a session is renewed, is longer than any test here may take. */
const LONG = { sessionTtlMs: 600_000 };

wantedOf(['etcd']).forEach(() =>
  describe('a holder on etcd whose entry somebody else deletes', () => {
    let world: EtcdWorld;
    beforeAll(async () => {
      world = await EtcdWorld.start();
    });
    afterEach(() => world.closeClients());
    afterAll(() => world[Symbol.asyncDispose]());

    const countWatchRequests = async (): Promise<number> => (await world.server.requests())['Watch'] ?? 0;

    /** Resolves to a lock whose entry is watched. */
    async function acquireWatched(key: string) {
      const locks = world.service(LONG);
      const before = await countWatchRequests();
      const lock = await locks.acquire(key);
      await eventually(async () => expect(await countWatchRequests()).toBe(before + 1));
      return lock;
    }

    it('is told at once, before or after its entry is watched', async () => {
      const operators = world.service(LONG);
      for (const isWatched of [false, true]) {
        const lock = isWatched ? await acquireWatched('told') : await world.service(LONG).acquire('told');
        const next = operators.acquire('told', { waitMs: 10_000 });
        await operators.evict('told');
        await aborted(lock.signal);
        expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
        await (await next).release();
      }
    });

    it('keeps its lock when the stream of the watches ends', async () => {
      const locks = await world.proxied({ ...LONG, sessionTtlMs: 3_000 });
      const lock = await locks.acquire('kept');
      await eventually(async () => expect(await countWatchRequests()).toBeGreaterThan(0));
      world.proxy.reset();
      await throughout(3_500, () => expect(lock.isHeld).toBe(true));
      // The renewals since then watch by the next stream.
      const told = aborted(lock.signal);
      await world.service().evict('kept');
      await told;
    });

    it('ends its watch with the lock', async () => {
      const lock = await acquireWatched('released');
      const before = await countWatchRequests();
      await lock.release();
      // A cancellation is a request of the stream.
      await eventually(async () => expect(await countWatchRequests()).toBe(before + 1));
      expect(lock.signal.aborted).toBe(false);
    });
  }),
);
