import { type LockBackend, LockService } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually, Gate, handled, throughout } from '../../support/index.js';
import { contend, EtcdWorld, lineOf, win } from './etcd-world.js';

/** Many at once keep a busy machine busy for a while. */
const PATIENT = { sessionTtlMs: 60_000, patienceMs: 60_000 };

describeWanted(['etcd'], 'the queue on etcd', () => {
  const world = EtcdWorld.shared();

  it('costs one request to acquire and one to release, once there is a session', async () => {
    const backend = world.backend({ sessionTtlMs: 60_000 });
    await (await win(backend, 'warm-up')).release();
    const before = await world.server.requests();
    const pairs = 50;
    for (let i = 0; i < pairs; i += 1) await (await win(backend, `sale-${i}`)).release();
    const after = await world.server.requests();
    const asked = Object.entries(after).map(([method, count]) => [method, count - (before[method] ?? 0)] as const);
    expect(Object.fromEntries(asked.filter(([, count]) => count > 0))).toEqual({ Txn: 2 * pairs });
  });

  it('uses the same name again, for etcd would look through all those that were ever used', async () => {
    const backend = world.backend({ sessionTtlMs: 60_000 });
    const names = new Set<string | undefined>();
    for (let i = 0; i < 5; i += 1) {
      const lease = await win(backend, 'again');
      names.add((await world.places('again'))[0]?.key);
      await expect(contend(backend, 'again')).resolves.toBeNull();
      await lease.release();
    }
    expect(names.size).toBe(1);
  });

  it('costs one request to be refused, and leaves nothing', async () => {
    const [ours, theirs] = [world.backend({ sessionTtlMs: 60_000 }), world.backend({ sessionTtlMs: 60_000 })];
    await (await win(theirs, 'warm-up')).release();
    const lease = await win(ours, 'taken');
    const before = await world.server.requests();
    await expect(contend(theirs, 'taken')).resolves.toBeNull();
    const after = await world.server.requests();
    expect((after['Txn'] ?? 0) - (before['Txn'] ?? 0)).toBe(1);
    expect(await world.places('taken')).toHaveLength(1);
    await lease.release();
  });

  it('costs one request to check a sequencer', async () => {
    const [ours, theirs] = [1, 2].map(() => new LockService(world.backend({ sessionTtlMs: 60_000 })));
    const shown = (await ours?.acquire('shown'))?.sequencer() ?? '';
    await theirs?.checkSequencer(shown);
    const before = await world.server.requests();
    await expect(theirs?.checkSequencer(shown)).resolves.toBe('valid');
    const after = await world.server.requests();
    expect((after['Txn'] ?? 0) - (before['Txn'] ?? 0)).toBe(1);
    expect(after['Range']).toBe(before['Range']);
    await Promise.all([ours?.close(), theirs?.close()]);
  });

  it('wakes one of 200 waiters with a release', async () => {
    const backends = Array.from({ length: 4 }, () => world.backend(PATIENT));
    const [first] = backends;
    if (!first) throw new Error('there are four');
    const holder = await win(first, 'herd');
    const entered = new Gate();
    const given = new Gate();
    let served = 0;
    const contenders = Array.from({ length: 200 }, async (_, place) => {
      const lease = await win(backends[place % 4] ?? first, 'herd', { waitMs: 60_000 });
      served += 1;
      entered.open();
      await given.opened;
      await lease.release();
    });
    const all = handled(Promise.all(contenders));
    await lineOf(world, 'herd', 201, 20_000);
    const watches = await eventually(async () => {
      const { Watch = 0 } = await world.server.requests();
      if (Watch < 200) throw new Error(`${Watch} watches`);
      return Watch;
    });
    const before = await world.server.requests();
    await holder.release();
    await entered.opened;
    await throughout(100, async () => {
      const after = await world.server.requests();
      // The release, and the look of the one who was woken; he ends his watch.
      expect((after['Txn'] ?? 0) - (before['Txn'] ?? 0)).toBe(2);
      expect(after['Watch']).toBe(watches + 1);
      expect(served).toBe(1);
    });
    given.open();
    await all;
    expect(served).toBe(200);
    expect(await world.places('herd')).toEqual([]);
  });

  it('serves 1,000 of 1,000 in the order in which they came, with growing tokens', async () => {
    const backends = Array.from({ length: 10 }, () => world.backend(PATIENT));
    for (let round = 0; round < 5; round += 1) {
      const { inLine, served } = await serve(backends, `fifo-${round}`, 200);
      expect(served).toHaveLength(200);
      expect(served).toEqual(inLine);
      expect(served.every(({ token }, i) => i === 0 || token > (served[i - 1]?.token ?? 0n))).toBe(true);
    }
  });

  const serve = async (backends: readonly LockBackend[], key: string, length: number) => {
    const holder = await win(world.backend(PATIENT), key);
    const served: { readonly owner: string; readonly token: bigint }[] = [];
    const contenders = Array.from({ length }, async (_, place) => {
      const [backend, owner] = [backends[place % backends.length], `owner-${place}`];
      if (!backend) throw new Error('there are some');
      const lease = await win(backend, key, { waitMs: 100_000, owner });
      served.push({ owner, token: lease.fencingToken });
      await lease.release();
    });
    const all = handled(Promise.all(contenders));
    const [, ...line] = await lineOf(world, key, length + 1, 60_000);
    await holder.release();
    await all;
    const countedFrom = await world.tokenOf(undefined);
    const inLine = line.map((place) => ({
      owner: (JSON.parse(place.value) as { readonly owner: string }).owner,
      token: countedFrom + place.createdAt,
    }));
    return { inLine, served };
  };
});
