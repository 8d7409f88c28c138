import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type HealthSource,
  currentLock,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  LockService,
  LockBackend,
  ReportedHealth,
} from 'nestjs-distributed-lock/core';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { atLeastMs, eventually } from '../support/index.js';

/** Enough for some of them to share a point of the grid with those of another call tree. */
const MANY = Array.from({ length: 20 }, (_, i) => i);

describe('call trees', () => {
  it('never run abort listeners and observers of one lock inside another', async () => {
    const store = new MemoryLeaseStore();
    const request = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const look = (): void => void seen.push(currentLock()?.key, request.getStore());
    await using locks = new LockService(() => new LockBackend(store), {
      defaults: { ttlMs: atLeastMs(300) },
      observers: [{ lost: look }],
    });
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => (leave = resolve));
    // Each of these is the first to need its point of the grid.
    const inside = request.run('a request', () =>
      locks.withLock(
        'K',
        async () => {
          await Promise.all(MANY.map((i) => locks.acquire(`inner ${i}`)));
          await left;
        },
        { ttlMs: 10_000 },
      ),
    );
    const strangers = await Promise.all(MANY.map((i) => locks.acquire(`outer ${i}`)));
    for (const { signal } of strangers) signal.addEventListener('abort', look);
    for (const { key } of strangers) store.revoke(key);
    await eventually(() => strangers.every(({ state }) => state === 'lost'));
    leave();
    await inside;
    expect(seen).toHaveLength(MANY.length * 4);
    expect(seen.filter((found) => found !== undefined)).toEqual([]);
  });

  it('have the backend called outside of every lock, so that what it opens on first use is in none', async () => {
    const backend = new CuriousStore();
    await using outer = new LockService(memory());
    await outer.withLock('K', async () => {
      expect(currentLock()?.key).toBe('K');
      await using locks = new LockService(() => backend, { defaults: { ttlMs: atLeastMs(300) } });
      await locks.start();
      const lock = await locks.acquire('k');
      await locks.checkSequencer(lock.sequencer());
      await eventually(() => backend.seen.has('renew'));
      await lock.release();
      await Promise.all([1, 2].map(() => locks.withLock('k', () => expect(currentLock()?.key).toBe('k'))));
    });
    const calls = ['health', 'start', 'watch', 'tryAcquire', 'isHeldBy', 'renew', 'release', 'close'];
    expect([...backend.seen.entries()]).toEqual(calls.map((call) => [call, undefined]));
  });
});

/** Remembers inside which lock it was called. */
class CuriousStore implements LeaseStore {
  readonly name = 'curious';
  readonly guarantee = 'best-effort';
  readonly seen = new Map<string, string | undefined>();
  readonly #inner = new MemoryLeaseStore();

  async start(): Promise<void> {
    this.#look('start');
  }

  tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    this.#look('tryAcquire');
    return this.#inner.tryAcquire(key, owner, ttlMs, metadata);
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    this.#look('renew');
    return this.#inner.renew(key, owner, ttlMs);
  }

  release(key: string, owner: string): Promise<boolean> {
    this.#look('release');
    return this.#inner.release(key, owner);
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    this.#look('watch');
    return this.#inner.watch(key, owner, wake);
  }

  async isHeldBy(): Promise<boolean> {
    this.#look('isHeldBy');
    return true;
  }

  async close(): Promise<void> {
    this.#look('close');
  }

  get health(): HealthSource {
    this.#look('health');
    return new ReportedHealth();
  }

  #look(call: string): void {
    const lock = currentLock()?.key;
    if (!this.seen.has(call) || lock !== undefined) this.seen.set(call, lock);
  }
}
