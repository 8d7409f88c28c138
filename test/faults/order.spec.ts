import { describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { wantedOf } from '../backends/describe-backend.js';
import { aborted } from '../conformance/contract.js';
import { Holder } from '../support/harness-holder.js';
import { RedisServer } from '../servers/redis-server.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { onBackends } from './on-backends.js';

/** `ORDER_ROUNDS=200` for the whole of it. */
const ROUNDS = Number(process.env.ORDER_ROUNDS ?? 20);
/** Rounds at a time, each with a key of its own. */
const LANES = 4;
const TTL_MS = 500;
const MODES = { 'redis-queue': 'queue', 'redis-plain': 'plain', 'redis-getset': 'getset' } as const;

/**
 * The safety property: a holder that is cut off alone knows that its lock is lost before anybody else has it. Nothing but
 * its own clock can tell it.
 */
describe('the order test', () => {
  for (const name of wantedOf(['redis-queue', 'redis-plain', 'redis-getset'])) {
    const property = `a holder that is cut off is told before the next one has the key, ${ROUNDS} of ${ROUNDS} times`;
    it(`${name}: ${property}`, () => cutOff(MODES[name]), ROUNDS * 1_000 + 30_000);
  }

  onBackends(['redis-queue', 'redis-plain', 'redlock', 'sqlite', 'postgres', 'mariadb'], (contract) => {
    it('a holder that is frozen while the key passes on knows it in its first step afterwards', async () => {
      const { connection } = contract.harness;
      if (!connection) throw new Error('needs a process of its own');
      const other = await contract.service();
      const key = contract.key();
      await using holder = await Holder.start(connection());
      await holder.acquire(key, { ttlMs: TTL_MS });
      const belief = await holder.freezeWhile(key, async () => {
        const next = await other.acquire(key, { ttlMs: 20_000, waitMs: 10_000 });
        await next.release();
      });
      expect(belief).toMatchObject({ isHeld: false, state: 'lost', throws: true, aborted: true });
    });
  });
});

async function cutOff(mode: RedisMode): Promise<void> {
  const server = await RedisServer.start();
  const leadsMs: number[] = [];
  try {
    const lane = async (first: number): Promise<void> => {
      for (let round = first; round < ROUNDS; round += LANES)
        leadsMs.push(await oneRound(server, mode, `sale-${round}`));
    };
    await Promise.all(Array.from({ length: LANES }, (_, first) => lane(first)));
  } finally {
    await server.stop();
  }
  expect(leadsMs).toHaveLength(ROUNDS);
  expect(leadsMs.filter((lead) => lead < 0)).toEqual([]);
}

/** How long the holder knew of its loss when the next one got the key. */
async function oneRound(server: RedisServer, mode: RedisMode, key: string): Promise<number> {
  const proxy = await FaultProxy.start(server);
  const [alone, other] = [`redis://127.0.0.1:${proxy.port}`, server.url].map(
    (url) => new LockService(redis({ url, mode })),
  );
  if (!alone || !other) throw new Error('two services were made');
  try {
    const lock = await alone.acquire(key, { ttlMs: TTL_MS });
    let toldAt = Infinity;
    void aborted(lock.signal).then((at) => (toldAt = at));
    const next = other.acquire(key, { ttlMs: TTL_MS, waitMs: 20_000 });
    proxy.pause();
    const present = await next;
    const grantedAt = performance.now();
    expect(lock.isHeld).toBe(false);
    expect(present.fencingToken).toBeGreaterThan(lock.fencingToken);
    await present.release();
    return grantedAt - toldAt;
  } finally {
    proxy.resume();
    await Promise.all([alone.close(1_000), other.close(1_000)]);
    await proxy.close();
  }
}
