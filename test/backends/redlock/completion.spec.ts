import type { LockBackend } from 'nestjs-distributed-lock/core';
import { atLeastMs, describeWanted, eventually, type FaultProxy, type Lease, win } from '../../support/index.js';
import { JOIN } from '../../../lib/backends/redlock/redlock-scripts.js';
import { leaseKeyOf } from './harness.js';
import { RedlockWorld } from './redlock-world.js';

const KEYS = 200;
const TTL_MS = 6_000;
/** Time for which the node refuses requests that the others take. */
const LONG_SKEW_MS = 60_000;
const LONG_TTL_MS = 60_000;
/** No node takes longer here, unless it is to be silent. */
const PATIENCE_MS = 10_000;

describeWanted(['redlock'], 'a lease of %s that not all nodes have', () => {
  const world = RedlockWorld.shared(3);

  const leasesOf = (key: string): Promise<(string | null)[]> =>
    Promise.all(world.operators.map((operator) => operator.get(leaseKeyOf(key))));
  const expectOnAll = (key: string, { owner }: Lease): Promise<void> =>
    eventually(async () => expect(await world.owners(key)).toEqual([owner, owner, owner]));
  const hold = async (backend: LockBackend, key = 'key'): Promise<Lease> => {
    const lease = await acquire(backend, key);
    await expectOnAll(key, lease);
    return lease;
  };
  /** A backend behind proxies, and what it sends to the last node. */
  const behindProxies = async () => {
    const { all, urls } = await world.proxies();
    const backend = world.backend({ urls, requestTimeoutMs: PATIENCE_MS });
    await (await hold(backend, 'warm-up')).release();
    const [, , last] = all;
    if (!last) throw new Error('there are three nodes');
    return { backend, last, joins: joinsOf(last) };
  };

  it('stands on all of them after a renewal, where a flush made nodes refuse the first vote', async () => {
    const { all, urls } = await world.proxies();
    const service = world.service({ urls, requestTimeoutMs: PATIENCE_MS, maxSkewMs: LONG_SKEW_MS });
    await service.withLock('warm-up', () => undefined);
    await eventually(async () => expect(await world.leases('warm-up')).toBe(0));
    await Promise.all(world.operators.map((operator) => operator.flushall()));
    // The last node is asked a little later, and is not heard at first: it refuses what the others take.
    const nowUs = Date.now() * 1_000;
    for (const [node, operator] of world.operators.entries())
      await operator.set('redlock:since', nowUs + (node === 2 ? 5_000 : 0));
    all[2]?.delay(100, 'down');
    const keys = Array.from({ length: KEYS }, (_, place) => `key-${place}`);
    const locks = await Promise.all(keys.map((key) => service.acquire(key, { ttlMs: TTL_MS })));
    all[2]?.delay(0);
    const standing = await Promise.all(keys.map((key) => world.leases(key)));
    const incomplete = standing.filter((nodes) => nodes === 2).length;
    process.stdout.write(`  ${incomplete} of ${KEYS} keys stand on two of three nodes before a renewal\n`);
    expect(incomplete).toBeGreaterThan(0);
    for (const key of keys) {
      await eventually(async () => expect(await world.leases(key)).toBe(3), { withinMs: TTL_MS });
      // The token of the acquisition, not that of the vote that completed it.
      expect(new Set(await leasesOf(key)).size).toBe(1);
    }
    expect(locks.filter(({ state }) => state !== 'held')).toEqual([]);
    await Promise.all(locks.map((lock) => lock.release()));
    for (const key of keys) await eventually(async () => expect(await world.leases(key)).toBe(0));
  });

  it('R7: is kept while nodes without a disk restart one after the other', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const lock = await ours.acquire('key', { ttlMs: atLeastMs(1_500) });
    await eventually(async () => expect(await world.leases('key')).toBe(3));
    const [owner] = await world.owners('key');
    for (const server of world.servers) {
      await server.restart({ empty: true });
      await eventually(async () => expect(await world.owners('key')).toEqual([owner, owner, owner]));
      await expect(theirs.tryAcquire('key')).resolves.toBeNull();
      expect(lock.isHeld).toBe(true);
    }
    await lock.release();
    const next = await eventually(() => theirs.acquire('key', { waitMs: 0 }));
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await next.release();
  });

  it('is not taken where another owner has the key, until that lease is gone', async () => {
    const { backend, joins } = await behindProxies();
    const lease = await hold(backend);
    await world.occupy('key', 'somebody', [2]);
    await expect(lease.renew()).resolves.toBe(true);
    await eventually(() => expect(joins).toHaveLength(1));
    await expect(lease.renew()).resolves.toBe(true);
    await eventually(() => expect(joins.length).toBeGreaterThan(1));
    await expect(world.owners('key')).resolves.toEqual([lease.owner, lease.owner, 'somebody']);
    await world.free('key', [2]);
    await expect(lease.renew()).resolves.toBe(true);
    await expectOnAll('key', lease);
    await lease.release();
  });

  it('is not completed without a quorum: the renewal says no, and no node gets it again', async () => {
    const { backend, joins } = await behindProxies();
    const lease = await hold(backend);
    await world.free('key', [1, 2]);
    await expect(lease.renew()).resolves.toBe(false);
    await backend.store.release('key', lease.owner);
    await eventually(async () => expect(await world.leases('key')).toBe(0));
    expect(joins).toEqual([]);
  });

  it('has no ghost when the release comes while a node is asked that does not know the script', async () => {
    const { backend, last, joins } = await behindProxies();
    const lease = await hold(backend);
    await world.free('key', [2]);
    await world.operators[2]?.script('FLUSH');
    // The node knows the script of a release again.
    await (await hold(backend, 'other')).release();
    await eventually(async () => expect(await world.leases('other')).toBe(0));
    last.delay(100, 'up');
    await expect(lease.renew()).resolves.toBe(true);
    await eventually(() => expect(joins).toHaveLength(1));
    await lease.release();
    // By the name of the script, and by its source.
    await eventually(() => expect(joins).toHaveLength(2));
    await backend.close();
    await expect(world.leases('key')).resolves.toBe(0);
  });

  it('is completed no more once it is released, however late a node says that it lacks it', async () => {
    await using wide = await RedlockWorld.start(5);
    const { all, urls } = await wide.proxies();
    const backend = wide.backend({ urls, requestTimeoutMs: PATIENCE_MS });
    const joins = joinsOf(all[4]);
    const lease = await acquire(backend, 'key');
    await eventually(async () => expect(await wide.leases('key')).toBe(5));
    await wide.free('key', [3, 4]);
    all[4]?.pause('down');
    await expect(lease.renew()).resolves.toBe(true);
    await eventually(async () => expect(await wide.leases('key')).toBe(4));
    await lease.release();
    all[4]?.resume();
    await backend.close();
    expect(joins).toEqual([]);
    await expect(wide.leases('key')).resolves.toBe(0);
  });

  it('is not completed after an eviction, however late the request comes', async () => {
    const { backend, last, joins } = await behindProxies();
    const lease = await hold(backend);
    await world.free('key', [2]);
    last.onRequest(() => {
      if (joins.length === 1) last.pause('up');
    });
    await expect(lease.renew()).resolves.toBe(true);
    await eventually(() => expect(joins).toHaveLength(1));
    await expect(world.service().evict('key')).resolves.toBeDefined();
    await eventually(async () => expect(await world.leases('key')).toBe(0));
    await expect(lease.renew()).resolves.toBe(false);
    last.resume();
    await backend.close();
    await expect(world.leases('key')).resolves.toBe(0);
  });
});

function acquire(backend: LockBackend, key: string): Promise<Lease> {
  return win(backend, key, { ttlMs: LONG_TTL_MS, waitMs: 10_000 });
}

/** The requests by which a node takes a lease later, by the name of their script or by its source. */
function joinsOf(proxy: FaultProxy | undefined): readonly Buffer[] {
  const joins: Buffer[] = [];
  proxy?.onRequest((chunk) => {
    if (chunk.includes(JOIN.sha1) || chunk.includes(JOIN.source)) joins.push(chunk);
  });
  return joins;
}
