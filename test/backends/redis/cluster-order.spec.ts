import { describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { aborted } from '../../conformance/contract.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { FaultProxy } from '../../support/fault-proxy.js';
import { wantedOf } from '../describe-backend.js';

/** `ORDER_ROUNDS=200` for the whole of it. */
const ROUNDS = Number(process.env.ORDER_ROUNDS ?? 20);
/** Rounds at a time, each with a key of its own. */
const LANES = 10;
const TTL_MS = 500;

for (const name of wantedOf(['redis-cluster'])) {
  describe(name, () => {
    const property = `a holder that is cut off is told before the next one has the key, ${ROUNDS} of ${ROUNDS} times`;
    it(`order: ${property}`, () => cutOff(), ROUNDS * 1_000 + 30_000);
  });
}

async function cutOff(): Promise<void> {
  const cluster = await RedisCluster.start({ replicas: 0, nodeTimeoutMs: 15_000 });
  const leadsMs: number[] = [];
  try {
    const lane = async (first: number): Promise<void> => {
      for (let round = first; round < ROUNDS; round += LANES) leadsMs.push(await oneRound(cluster, `sale-${round}`));
    };
    await Promise.all(Array.from({ length: LANES }, (_, first) => lane(first)));
  } finally {
    await cluster.stop();
  }
  expect(leadsMs).toHaveLength(ROUNDS);
  expect(leadsMs.filter((lead) => lead < 0)).toEqual([]);
}

/** How long the holder knew of its loss when the next one got the key. */
async function oneRound(cluster: RedisCluster, key: string): Promise<number> {
  const ways = await Promise.all(
    cluster.servers.map(async ({ port }) => ({ port, proxy: await FaultProxy.start({ port }) })),
  );
  const [host, proxies] = ['127.0.0.1', ways.map(({ proxy }) => proxy)];
  const natMap = Object.fromEntries(ways.map(({ port, proxy }) => [`${host}:${port}`, { host, port: proxy.port }]));
  const alone = new LockService(redis({ cluster: proxies.map(({ port }) => ({ host, port })), natMap }));
  const other = new LockService(redis({ cluster: cluster.addresses }));
  try {
    const lock = await alone.acquire(key, { ttlMs: TTL_MS });
    let toldAt = Infinity;
    void aborted(lock.signal).then((at) => (toldAt = at));
    const next = other.acquire(key, { ttlMs: TTL_MS, waitMs: 20_000 });
    for (const proxy of proxies) proxy.pause();
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
