import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { leadOf, toldFirst } from '../../faults/cut-off.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { describeWanted, FaultProxy } from '../../support/index.js';

/** `ORDER_ROUNDS=200` for the whole of it. */
const ROUNDS = Number(process.env.ORDER_ROUNDS ?? 20);
/** Rounds at a time, each with a key of its own. */
const LANES = 10;

describeWanted(['redis-cluster'], '%s', () => {
  const property = `a holder that is cut off is told before the next one has the key, ${ROUNDS} of ${ROUNDS} times`;
  it(`order: ${property}`, () => cutOff(), ROUNDS * 1_000 + 300_000);
});

async function cutOff(): Promise<void> {
  const cluster = await RedisCluster.start({ replicas: 0, nodeTimeoutMs: 15_000 });
  try {
    await toldFirst(ROUNDS, LANES, (round) => oneRound(cluster, `sale-${round}`));
  } finally {
    await cluster.stop();
  }
}

async function oneRound(cluster: RedisCluster, key: string): Promise<number> {
  const ways = await Promise.all(
    cluster.servers.map(async ({ port }) => ({ port, proxy: await FaultProxy.start({ port }) })),
  );
  const [host, proxies] = ['127.0.0.1', ways.map(({ proxy }) => proxy)];
  const natMap = Object.fromEntries(ways.map(({ port, proxy }) => [`${host}:${port}`, { host, port: proxy.port }]));
  const alone = new LockService(redis({ cluster: proxies.map(({ port }) => ({ host, port })), natMap }));
  const other = new LockService(redis({ cluster: cluster.addresses }));
  return leadOf(key, { alone, other, proxies });
}
