import { hostname } from 'node:os';
import { LockConfigurationError, type LockService } from 'nestjs-distributed-lock/core';
import { aborted, eventually, handled, LONG_TTL_MS, type Suite, UNRENEWED_TTL_MS } from '../support/index.js';

/** Promises to a caller who neither holds a key nor waits for it: looking, evicting and listing. */
export function looking({ harness, it }: Suite): void {
  const { looks } = harness;
  const lines = looks.includes('waiters') || looks.includes('line') ? { waiters: [] } : {};
  const inLine = looks.includes('line') ? { owner: expect.any(String) } : { label: 'the-waiter', pid: process.pid };

  it('tells who holds a key and who waits for it', async (contract) => {
    const holder = await contract.service({ label: 'the-holder', namespace: 'looking' });
    const waiter = await contract.service({ label: 'the-waiter', namespace: 'looking' });
    const key = contract.key();
    if (!harness.namesHolder) return await expect(waiter.look(key)).rejects.toThrow(LockConfigurationError);
    await expect(waiter.look(key)).resolves.toEqual({ key, ...lines });
    const lock = await holder.acquire(key, { ttlMs: LONG_TTL_MS });
    const waiting = handled(waiter.acquire(key, { waitMs: 10_000 }));
    const state = await eventually(async () => {
      const seen = await waiter.look(key);
      if ('waiters' in lines) expect(seen.waiters).toMatchObject([inLine]);
      return seen;
    });
    const { since, leftMs, fencingToken, ...said } = state.holder ?? {};
    expect(said).toEqual({ owner: expect.any(String), label: 'the-holder', host: hostname(), pid: process.pid });
    expect(Math.abs(Date.now() - Number(since))).toBeLessThan(10_000);
    expect(fencingToken).toBe(looks.includes('token') ? lock.fencingToken : undefined);
    expect(leftMs === undefined).toBe(!looks.includes('leftMs'));
    expect(leftMs ?? 1).toBeGreaterThan(0);
    await lock.release();
    await (await waiting).release();
    await eventually(async () => expect(await holder.look(key)).toEqual({ key, ...lines }));
  });

  it('evicts the holder that was seen and no other, who is told, and the next one has a greater token', async (contract) => {
    const [ours, theirs] = [await contract.service({ label: 'evicted' }), await contract.service()];
    const key = contract.key();
    // Told by a renewal, and still there after a while without a processor.
    await using lock = await ours.acquire(key, { ttlMs: Math.max(6_000, harness.shortTtlMs) });
    if (!looks.includes('evict')) return await expect(theirs.evict(key)).rejects.toThrow(LockConfigurationError);
    const { owner = '' } = (await theirs.look(key)).holder ?? {};
    await expect(theirs.evict(key, `${owner}0`)).resolves.toBeUndefined();
    await expect(theirs.look(key)).resolves.toMatchObject({ holder: { owner } });
    const [told, waiting] = [
      aborted(lock.signal),
      handled(theirs.acquire(key, { waitMs: 10_000, ttlMs: LONG_TTL_MS })),
    ];
    await expect(theirs.evict(key, owner)).resolves.toMatchObject({ owner, label: 'evicted' });
    const next = await waiting;
    await told;
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'revoked' });
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await expect(ours.evict(key, owner)).resolves.toBeUndefined();
    expect(next.isHeld).toBe(true);
    await next.release();
    await expect(ours.evict(key)).resolves.toBeUndefined();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  it('tells a holder at once whom its own service evicts', async (contract) => {
    const locks = await contract.service();
    await using lock = await locks.acquire(contract.key(), { ttlMs: UNRENEWED_TTL_MS });
    if (!looks.includes('evict')) return await expect(locks.evict(lock.key)).rejects.toThrow(LockConfigurationError);
    await expect(locks.evict(lock.key)).resolves.toBeDefined();
    expect(lock.signal).toMatchObject({ aborted: true, reason: { code: 'LOCK_LOST', reason: 'revoked' } });
  });

  it('lists the keys of its namespace that are held', async (contract) => {
    const [ours, others] = [
      await contract.service({ namespace: 'list' }),
      await contract.service({ namespace: 'list-2' }),
    ];
    const key = contract.key();
    if (!looks.includes('keys')) return await expect(listOf(ours)).rejects.toThrow(LockConfigurationError);
    const held = [key, `${key}*`, `${key}/%2F{a}:\\0 caf\u00e9`].filter((text) => harness.keeps?.(text) ?? true);
    const options = { ttlMs: LONG_TTL_MS };
    const ourLocks = await Promise.all(held.map((text) => ours.acquire(text, options)));
    const locks = [...ourLocks, await others.acquire(key, options)];
    expect((await listOf(ours)).toSorted()).toEqual(held.toSorted());
    await Promise.all(locks.map((lock) => lock.release()));
    await eventually(async () => expect(await listOf(ours)).toEqual([]));
  });
}

async function listOf(service: LockService): Promise<string[]> {
  const keys = [];
  for await (const key of service.keys()) keys.push(key);
  return keys;
}
