import { randomUUID } from 'node:crypto';
import type { LockBackend } from 'nestjs-distributed-lock/core';
import { aborted, describeWanted, type Lease, throughout } from '../../support/index.js';
import { contend, EtcdWorld, lineOf, win } from './etcd-world.js';

const LONG = { sessionTtlMs: 60_000 };
const LIMIT = 10;
const WAITERS = 50;
const TWO = { limit: 2, waitMs: 30_000 };

describeWanted(['etcd'], 'several holders of a key on etcd', () => {
  const world = EtcdWorld.shared();

  /** The operator's are of other kinds. */
  const requests = async (): Promise<number> => (await world.server.requests())['Txn'] ?? 0;
  const during = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await requests();
    await work();
    return (await requests()) - before;
  };
  /** Resolves when it stands in line. */
  const inLine = async (backend: LockBackend, key: string, suffix: string): Promise<{ lease: Promise<Lease> }> => {
    const { length } = await world.places(key);
    const lease = win(backend, key, { owner: `${randomUUID()}${suffix}`, waitMs: 60_000 });
    await lineOf(world, key, length + 1);
    return { lease };
  };
  const warm = async (): Promise<LockBackend> => {
    const backend = world.backend(LONG);
    await (await win(backend, randomUUID())).release();
    return backend;
  };

  it('costs one request to acquire a share, one to release it, and one to be refused', async () => {
    const backends = [await warm(), await warm()];
    const [ours, theirs] = backends;
    if (!ours || !theirs) throw new Error('there are two');
    for (const suffix of ['~s', '~2-3']) {
      const key = randomUUID();
      let lease: Lease | undefined;
      expect(await during(async () => (lease = await win(ours, key, { owner: randomUUID() + suffix })))).toBe(1);
      const tryIt = (): Promise<Lease | null> => contend(theirs, key, { owner: randomUUID() + suffix });
      // A caller that does not wait looks before it stands behind others.
      expect(await during(async () => (await tryIt())?.release())).toBe(suffix === '~s' ? 3 : 1);
      expect(await world.places(key)).toHaveLength(1);
      expect(await during(async () => lease?.release())).toBe(1);
      expect(await world.places(key)).toEqual([]);
    }
  });

  it('lets readers wait for the writer before them, and for nobody else', async () => {
    const [ours, theirs] = [await warm(), await warm()];
    const key = randomUUID();
    const reader = await win(ours, key, { owner: `${randomUUID()}~s` });
    const writer = await inLine(theirs, key, '');
    const readers = [await inLine(ours, key, '~s'), await inLine(theirs, key, '~s')];
    let wrote: Lease | undefined;
    const toHandOver = await during(async () => {
      await reader.release();
      wrote = await writer.lease;
    });
    expect(toHandOver).toBe(2);
    const toLetIn = await during(async () => {
      await wrote?.release();
      await Promise.all(readers.map(({ lease }) => lease));
    });
    expect(toLetIn).toBe(3);
    for (const { lease } of readers) await (await lease).release();
  });

  it(`wakes few: each of ${WAITERS} who wait for ${LIMIT} permits costs a few requests, and they come in order`, async () => {
    const key = randomUUID();
    const backends = await Promise.all(Array.from({ length: LIMIT }, warm));
    const owner = (): string => `${randomUUID()}~1-${LIMIT}`;
    const first = await Promise.all(backends.map((backend) => win(backend, key, { owner: owner() })));
    const served: number[] = [];
    const waiting: Promise<void>[] = [];
    const toWait = await during(async () => {
      for (let place = 0; place < WAITERS; place += 1) {
        const backend = backends[place % LIMIT];
        if (backend) {
          waiting.push(serve(win(backend, key, { owner: owner(), waitMs: 60_000 }), () => served.push(place)));
        }
        await lineOf(world, key, LIMIT + place + 1);
      }
    });
    const toServe = await during(() => Promise.all([...waiting, ...first.map((lease) => lease.release())]));
    process.stdout.write(
      `  ${WAITERS} waiters, ${LIMIT} permits: ${toWait} requests to wait, ${toServe} to be served\n`,
    );
    expect(toWait).toBeLessThanOrEqual(2 * WAITERS);
    expect(toServe).toBeLessThanOrEqual(5 * WAITERS);
    for (const [index, place] of served.entries()) expect(Math.abs(index - place)).toBeLessThanOrEqual(LIMIT);
    expect(await world.places(key)).toEqual([]);
  });

  it('tells the holder whose entry an operator deletes, and not the others', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const key = randomUUID();
    const [one, two] = [await ours.acquire(key, TWO), await theirs.acquire(key, TWO)];
    const told = aborted(one.signal);
    const [oldest] = await world.places(key);
    await world.operator.remove(oldest?.key ?? '');
    await told;
    expect([one.isHeld, two.isHeld]).toEqual([false, true]);
    const next = await ours.acquire(key, TWO);
    expect(next.fencingToken).toBeGreaterThan(two.fencingToken);
  });

  it('gives the share of a holder that is cut off to the next one, after it knows, and leaves the others theirs', async () => {
    const [cutOff, living, waiting] = [await world.proxied(), world.service(), world.service()];
    const key = randomUUID();
    const [lost, kept] = [await cutOff.acquire(key, TWO), await living.acquire(key, TWO)];
    world.proxy.pause();
    const next = waiting.acquire(key, TWO).then((lock) => ({ lock, wasHeld: lost.isHeld }));
    await throughout(500, () => expect(waiting.inspect()).toEqual([]));
    const { lock, wasHeld } = await next;
    world.proxy.resume();
    expect([wasHeld, kept.isHeld, lock.isHeld]).toEqual([false, true, true]);
    expect(lock.fencingToken).toBeGreaterThan(kept.fencingToken);
  });
});

async function serve(lease: Promise<Lease>, onServed: () => void): Promise<void> {
  const got = await lease;
  onServed();
  await got.release();
}
