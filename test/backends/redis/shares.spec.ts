import { randomUUID } from 'node:crypto';
import { aborted, atLeastMs, eventually } from '../../support/index.js';
import { contend, describeRedis, win } from './redis-world.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(600);

const LONG = { ttlMs: 30_000, waitMs: 20_000 };
const reader = (): string => `${randomUUID()}~s`;
const oneOf = (limit: number): string => `${randomUUID()}~1-${limit}`;

describeRedis('several who have a key of Redis', (world) => {
  const holdersOf = (key: string): Promise<number> => world.operator.hlen(`lock:{${key}}:s`);

  it('cost one request to come, one to go, and one to renew them all', async () => {
    const backend = world.backend();
    const leases = await Promise.all(Array.from({ length: 50 }, () => win(backend, 'k', { owner: reader() })));
    expect(await leases[0]?.renew()).toBe(true);
    await (await win(backend, 'k', { owner: reader() })).release();
    const renewals = await world.commandsDuring(() => Promise.all(leases.map((lease) => lease.renew())));
    expect(renewals).toEqual(['evalsha']);
    const owner = reader();
    const visits = await world.commandsDuring(async () => (await win(backend, 'k', { owner })).release());
    expect(visits).toEqual(['evalsha', 'evalsha']);
    expect(await holdersOf('k')).toBe(50);
    expect(await world.operator.get('lock:{k}')).toMatch(/^\|50\|\d+\|$/u);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await world.operator.exists('lock:{k}', 'lock:{k}:s')).toBe(0);
  });

  it('have the key taken away all together by its deletion, and none of them takes room afterwards', async () => {
    const [one, two] = [world.service(), world.service()];
    const locks = [
      await one.acquire('k', { limit: 2, ttlMs: TTL_MS }),
      await two.acquire('k', { limit: 2, ttlMs: TTL_MS }),
    ];
    const told = locks.map(({ signal }) => aborted(signal));
    await world.operator.del('lock:{k}');
    const fresh = await Promise.all([1, 2].map(() => win(world.backend(), 'k', { owner: oneOf(2) })));
    await Promise.all(told);
    for (const { signal } of locks) expect(signal.reason).toMatchObject({ reason: 'revoked' });
    await expect(contend(world.backend(), 'k', { owner: oneOf(2) })).resolves.toBeNull();
    await Promise.all(fresh.map((lease) => lease.release()));
  });

  it('leave the share of one who died to the next, while the others renew theirs', async () => {
    const service = world.service();
    const living = await service.acquire('k', { limit: 2, ttlMs: TTL_MS });
    await win(world.backend(), 'k', { owner: oneOf(2), ttlMs: TTL_MS * 2.5 });
    const next = await world.service().acquire('k', { limit: 2, ...LONG });
    expect(living.isHeld).toBe(true);
    expect(await holdersOf('k')).toBe(2);
    await next.release();
    await living.release();
    expect(await world.operator.exists('lock:{k}', 'lock:{k}:s')).toBe(0);
  });

  it('are joined at once by those behind a writer who waits no longer', async () => {
    const [first, writer, second] = [world.service(), world.service(), world.service()];
    const reading = await first.acquire('k', { mode: 'shared', ...LONG });
    const controller = new AbortController();
    const writing = writer.acquire('k', { ...LONG, signal: controller.signal });
    const gone = expect(writing).rejects.toThrow('no longer');
    await world.untilWaiting('k', 1);
    const joining = second.acquire('k', { mode: 'shared', ...LONG });
    await world.untilWaiting('k', 2);
    controller.abort(new Error('no longer'));
    const joined = await joining;
    expect([reading.isHeld, joined.isHeld]).toEqual([true, true]);
    await gone;
    await joined.release();
    await reading.release();
  });

  it('come in order of arrival, whatever each of them wants', async () => {
    const holder = await world.service().acquire('k', LONG);
    const order: string[] = [];
    const waits: Promise<void>[] = [];
    const wanted = [{ limit: 3, permits: 3 }, { mode: 'shared' }, {}, { limit: 3 }, { limit: 3, permits: 2 }] as const;
    for (const [place, options] of wanted.entries()) {
      waits.push(world.service().withLock('k', () => void order.push(String(place)), { ...options, ...LONG }));
      await world.untilWaiting('k', place + 1);
    }
    await holder.release();
    await Promise.all(waits);
    // The first two fit together, and so do the last two.
    expect([order.slice(0, 2).toSorted(), order[2], order.slice(3).toSorted()]).toEqual([['0', '1'], '2', ['3', '4']]);
  });

  it('are as many as the limit of 10,000, and a look at them all changes nothing', async () => {
    const backend = world.backend();
    const owners = Array.from({ length: 2_000 }, () => `${randomUUID()}~5-10000`);
    await Promise.all(owners.map((owner) => win(backend, 'k', { owner })));
    await expect(contend(backend, 'k', { owner: oneOf(10_000) })).resolves.toBeNull();
    const { holder, holders } = await world.service().look('k');
    expect(holders).toHaveLength(2_000);
    expect(holder).toMatchObject({ share: { mode: 'permits', permits: 5, limit: 10_000 } });
    expect(await holdersOf('k')).toBe(2_000);
  });

  it('are told apart from a key that a stranger has written', async () => {
    await world.operator.set('lock:{k}', 'a stranger');
    await expect(contend(world.backend(), 'k', { owner: reader() })).resolves.toBeNull();
    await world.operator.del('lock:{k}');
    await eventually(async () => expect(await contend(world.backend(), 'k', { owner: reader() })).not.toBeNull());
  });
});
