import { randomUUID } from 'node:crypto';
import type { LockBackend } from 'nestjs-distributed-lock/core';
import { aborted, atLeastMs, describeWanted, eventually, type Lease, throughout } from '../../support/index.js';
import { contend, win, ZookeeperWorld } from './zookeeper-world.js';

const LIMIT = 10;
const WAITERS = 50;
const TWO = { limit: 2, waitMs: 30_000 };

describeWanted(['zookeeper'], '%s: several holders of a key', () => {
  const world = ZookeeperWorld.shared({ sessionTtlMs: 60_000 });

  /** Resolves when it stands in line. */
  const inLine = async (backend: LockBackend, key: string, suffix: string): Promise<{ lease: Promise<Lease> }> => {
    let onBlocked: () => void = () => undefined;
    const waits = new Promise<void>((resolve) => (onBlocked = resolve));
    const owner = `${randomUUID()}${suffix}`;
    const lease = win(backend, key, { owner, waitMs: 60_000, onBlocked });
    await waits;
    return { lease };
  };

  it(`no herd: each of ${WAITERS} who wait for ${LIMIT} permits costs a few requests, and they come in order`, async () => {
    const key = world.key();
    const backends = Array.from({ length: LIMIT }, () => world.backend());
    const owner = (): string => `${randomUUID()}~1-${LIMIT}`;
    const first = await Promise.all(backends.map((backend) => win(backend, key, { owner: owner() })));
    const served: number[] = [];
    const waiting: Promise<void>[] = [];
    const before = await received(world);
    for (let place = 0; place < WAITERS; place += 1) {
      const { lease } = await inLine(backends[place % LIMIT] ?? world.backend(), key, `~1-${LIMIT}`);
      waiting.push(serve(lease, () => served.push(place)));
    }
    const toWait = (await received(world)) - before;
    await Promise.all([...waiting, ...first.map((lease) => lease.release())]);
    const toServe = (await received(world)) - before - toWait;
    process.stdout.write(
      `  ${WAITERS} waiters, ${LIMIT} permits: ${toWait} requests to wait, ${toServe} to be served\n`,
    );
    // create, list, watch, read, list; and the first of them looks at who comes
    expect(toWait).toBeLessThanOrEqual(9 * WAITERS);
    expect(toServe).toBeLessThanOrEqual(5 * WAITERS);
    for (const [index, place] of served.entries()) expect(Math.abs(index - place)).toBeLessThanOrEqual(LIMIT);
    expect(await world.server.metric('zk_watch_count')).toBeLessThanOrEqual(2 * LIMIT);
  });

  it('readers wait for the writer before them, and for nobody else', async () => {
    const [ours, theirs] = [world.backend(), world.backend()];
    const key = world.key();
    const reader = await win(ours, key, { owner: `${randomUUID()}~s` });
    const writer = await inLine(theirs, key, '');
    const readers = [await inLine(ours, key, '~s'), await inLine(theirs, key, '~s')];
    const before = await received(world);
    await reader.release();
    const wrote = await writer.lease;
    // the release; the writer lists
    expect((await received(world)) - before).toBe(2);
    await wrote.release();
    for (const { lease } of readers) await (await lease).release();
    // the release; each reader lists and leaves
    expect((await received(world)) - before).toBe(2 + 5);
  });

  it('a claim that is refused leaves nothing, and no watch', async () => {
    const key = world.key();
    const backend = world.backend();
    const held = await win(backend, key, { owner: `${randomUUID()}~2-3` });
    await expect(contend(backend, key, { owner: `${randomUUID()}~2-3` })).resolves.toBeNull();
    expect(await world.queue(key)).toHaveLength(1);
    expect(await world.server.metric('zk_watch_count')).toBe(0);
    await held.release();
  });

  it('Z5: an operator deletes the node of one holder: that one is told, and the others are not', async () => {
    const services = [
      world.service({ sessionTtlMs: atLeastMs(4_000) }),
      world.service({ sessionTtlMs: atLeastMs(4_000) }),
    ];
    const key = world.key();
    const [one, two] = [await services[0]?.acquire(key, TWO), await services[1]?.acquire(key, TWO)];
    if (!one || !two) throw new Error('both fit');
    const told = aborted(one.signal);
    await world.operator.delete(await world.holderPath(key));
    await told;
    expect([one.isHeld, two.isHeld]).toEqual([false, true]);
    const next = await services[0]?.acquire(key, TWO);
    expect(next?.fencingToken).toBeGreaterThan(two.fencingToken);
  });

  it('Z3: one of two holders is cut off: its share goes to the next one after it knows, and the other keeps its own', async () => {
    const { proxy, service: cutOff } = await world.proxied({ sessionTtlMs: atLeastMs(4_000) });
    const [living, waiting] = [world.service(), world.service()];
    const key = world.key();
    const [lost, kept] = [await cutOff.acquire(key, TWO), await living.acquire(key, TWO)];
    proxy.pause();
    const next = waiting.acquire(key, TWO).then((lock) => ({ lock, wasHeld: lost.isHeld }));
    await throughout(500, () => expect(waiting.inspect()).toEqual([]));
    const { lock, wasHeld } = await next;
    expect([wasHeld, kept.isHeld, lock.isHeld]).toEqual([false, true, true]);
    expect(lock.fencingToken).toBeGreaterThan(kept.fencingToken);
  });

  it('Z14: without the right to write, those who wait for permits look again by themselves', async () => {
    const acl = [{ scheme: 'world', id: 'anyone', permissions: 'cdr' }];
    const backends = [1, 2, 3, 4].map(() => world.backend({ acl, prefix: '/unwritable' }));
    const key = world.key();
    const owner = (): string => `${randomUUID()}~1-2`;
    const [one, two, three, four] = backends;
    if (!one || !two || !three || !four) throw new Error('there are four');
    const held = [await win(one, key, { owner: owner() }), await win(two, key, { owner: owner() })];
    const waiting = [await inLine(three, key, '~1-2'), await inLine(four, key, '~1-2')];
    await held[0]?.release();
    await waiting[0]?.lease;
    await held[1]?.release();
    await eventually(() => waiting[1]?.lease, { withinMs: 10_000 });
  });
});

async function serve(lease: Promise<Lease>, onServed: () => void): Promise<void> {
  const got = await lease;
  onServed();
  await got.release();
}

async function received(world: ZookeeperWorld): Promise<number> {
  const connections = (await world.server.ask('cons')).split('\n').filter((line) => line.includes('sid='));
  return connections.reduce((sum, line) => sum + Number(/recved=(?<count>\d+)/u.exec(line)?.groups?.['count']), 0);
}
