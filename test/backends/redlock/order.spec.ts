import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-distributed-lock/core';
import { redlock } from 'nestjs-distributed-lock/redlock';
import { aborted } from '../../conformance/contract.js';
import { FaultProxy } from '../../support/fault-proxy.js';
import { wantedOf } from '../describe-backend.js';
import { RedlockWorld } from './redlock-world.js';

/** `ORDER_ROUNDS=200` for the whole of it. */
const ROUNDS = Number(process.env.ORDER_ROUNDS ?? 20);
/** Rounds at a time, each with a key of its own. */
const LANES = 4;
const TTL_MS = 500;

wantedOf(['redlock']).forEach((name) =>
  describe(`the order test of ${name}`, () => {
    let world: RedlockWorld;
    beforeAll(async () => {
      world = await RedlockWorld.start();
    });
    afterAll(() => world.stop());

    it.each([5, 3])(
      `a holder that is cut off from %d of five is told before the next one has the key, ${ROUNDS} of ${ROUNDS} times`,
      async (nodes) => {
        const leadsMs: number[] = [];
        const lane = async (first: number): Promise<void> => {
          for (let round = first; round < ROUNDS; round += LANES)
            leadsMs.push(await cutOff(nodes, `${nodes}-${round}`));
        };
        await Promise.all(Array.from({ length: LANES }, (_, first) => lane(first)));
        expect(leadsMs).toHaveLength(ROUNDS);
        expect(leadsMs.filter((lead) => lead < 0)).toEqual([]);
      },
      ROUNDS * 1_000 + 30_000,
    );

    /** How long the holder knew of its loss when the next one got the key. */
    async function cutOff(nodes: number, key: string): Promise<number> {
      const proxies = await Promise.all(world.servers.map((server) => FaultProxy.start(server)));
      const alone = new LockService(redlock({ urls: proxies.map(({ port }) => `redis://127.0.0.1:${port}`) }));
      const other = new LockService(redlock({ urls: world.urls }));
      try {
        await other.withLock(`${key}-warm-up`, () => undefined);
        const lock = await alone.acquire(key, { ttlMs: TTL_MS });
        let toldAt = Infinity;
        void aborted(lock.signal).then((at) => (toldAt = at));
        const next = other.acquire(key, { ttlMs: TTL_MS, waitMs: 20_000 });
        for (const proxy of proxies.slice(0, nodes)) proxy.pause();
        const present = await next;
        const grantedAt = performance.now();
        expect(lock.isHeld).toBe(false);
        expect(present.fencingToken).toBeGreaterThan(lock.fencingToken);
        await present.release();
        return grantedAt - toldAt;
      } finally {
        for (const proxy of proxies) proxy.resume();
        await Promise.all([alone.close(1_000), other.close(1_000)]);
        await Promise.all(proxies.map((proxy) => proxy.close()));
      }
    }
  }),
);
