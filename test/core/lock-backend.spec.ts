import { getEventListeners } from 'node:events';
import { LockBackend } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { BackendWorld, never } from './backend-world.js';
import { LossyStore } from './lossy-store.js';

describe('LockBackend', () => {
  let { clock, store, backend, request, occupy } = new BackendWorld();

  beforeEach(() => {
    ({ clock, store, backend, request, occupy } = new BackendWorld());
  });

  it('has the TTL limits of its store, and asks it for nothing else', async () => {
    const limited = new LockBackend(Object.assign(store, { traits: { ttlLimits: { minMs: 2_000, maxMs: 3_000 } } }));
    expect(limited.store.traits?.ttlLimits).toEqual({ minMs: 2_000, maxMs: 3_000 });
    await expect(limited.acquire('k', request(0))).rejects.toThrow(
      'ttlMs must be from 2000 to 3000 with lossy; it was 1000',
    );
    expect(store.asked).toEqual([]);
  });

  it('asks once and never again when the deadline is past already', async () => {
    await occupy();
    await expect(backend.acquire('k', request(0))).resolves.toBeNull();
    expect(store.asked).toEqual(['acquire']);
  });

  it('polls with jitter until the deadline, tells who is in the way, and leaves nothing to clean up', async () => {
    await occupy();
    const seen: unknown[] = [];
    const waiting = backend.acquire('k', request(1_000, { onBlocked: (by) => seen.push(by) }));
    await clock.advance(1_000);
    await expect(waiting).resolves.toBeNull();
    expect(seen.length).toBeGreaterThanOrEqual(6);
    expect(seen.length).toBeLessThanOrEqual(21);
    for (const by of seen) expect(by).toMatchObject({ pid: 2 });
    expect(store.asked).not.toContain('release');
  });

  it('lets others ask first when it is told to, unless its time is short', async () => {
    const yielding = backend.acquire('k', request(5_000, { shouldYield: true }));
    await clock.advance(200);
    await expect(yielding).resolves.toMatchObject({ times: { sentAt: 155 } });
    const hurried = backend.acquire('other', request(20, { shouldYield: true }));
    await clock.advance(20);
    await expect(hurried).resolves.toMatchObject({ times: { sentAt: 210 } });
    await expect(backend.acquire('third', request(0, { shouldYield: true }))).resolves.toMatchObject({
      times: { sentAt: 220 },
    });
  });

  it('asks when the lease of the holder ends, not a poll later', async () => {
    backend = new LockBackend(store, { pollMs: 10_000 });
    await store.inner.tryAcquire('k', 'stranger', 300, { host: 'there', pid: 2 });
    const waiting = backend.acquire('k', request(5_000));
    await clock.advance(305);
    await expect(waiting).resolves.toMatchObject({ times: { sentAt: 305 } });
  });

  it('does not trust a lease whose answer came after its end', async () => {
    store.carry = async (call) => {
      const answer = await call();
      clock.stall(1_000);
      return answer;
    };
    const acquiring = backend.acquire('k', request(3_000));
    const refused = expect(acquiring).rejects.toThrow('the answer came after the lease had ended');
    await clock.advance(3_000);
    await refused;
    expect(store.inner.held()).toEqual([]);
  });

  it('gives up at once with the reason of the signal, waiting or asking, and leaves no listener', async () => {
    for (const carry of [store.carry, () => never()] as const) {
      await occupy();
      store.carry = carry as LossyStore['carry'];
      const controller = new AbortController();
      const acquiring = backend.acquire('k', request(10_000, { signal: controller.signal }));
      await clock.advance(10);
      controller.abort('enough');
      await expect(acquiring).rejects.toBe('enough');
      expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    }
  });

  describe('with more callers than a store is asked for at a time', () => {
    const MOST_ASKED = 5_000;
    let answers: (() => void)[];

    beforeEach(() => {
      answers = [];
      store.carry = async (call) => {
        await new Promise<void>((answer) => answers.push(answer));
        return call();
      };
      for (let i = 0; i < MOST_ASKED; i += 1) backend.acquire(`first ${i}`, request(10_000)).catch(() => undefined);
    });

    it('asks for the others as answers come, in their order', async () => {
      const granted: string[] = [];
      const acquiring = ['a', 'b', 'c'].map(async (key) => {
        await backend.acquire(key, request(10_000));
        granted.push(key);
      });
      expect(answers).toHaveLength(MOST_ASKED);
      for (const answer of answers) answer();
      await eventually(() => expect(answers).toHaveLength(MOST_ASKED + 3));
      for (const answer of answers) answer();
      await Promise.all(acquiring);
      expect(granted).toEqual(['a', 'b', 'c']);
    });

    it('lets each of the others have its own deadline, patience, signal and dismissal', async () => {
      const controller = new AbortController();
      const said = 'lossy could not acquire "k": very many acquisitions of this process wait for an answer already';
      const late = expect(backend.acquire('k', request(200))).rejects.toThrow(said);
      const impatient = expect(backend.acquire('k', request(0))).rejects.toThrow(said);
      const calledOff = expect(backend.acquire('k', request(9_000, { signal: controller.signal }))).rejects.toBe(
        'enough',
      );
      const dismissed = expect(backend.acquire('k', request(9_000))).rejects.toBe('over');
      controller.abort('enough');
      await calledOff;
      await clock.advance(300);
      await late;
      await clock.advance(300);
      await impatient;
      backend.rejectAll('over');
      await dismissed;
      expect(store.asked).toHaveLength(MOST_ASKED);
    });

    it('asks at once for whoever inherits a place in the line', () => {
      backend
        .acquire('k', request(10_000, { inheritsQueueEntry: true, handOffQueueEntry: () => false }))
        .catch(() => undefined);
      expect(answers).toHaveLength(MOST_ASKED + 1);
    });
  });

  it('asks as soon as the store wakes it, also when that happens while it asks', async () => {
    let wake = (): void => undefined;
    let watching = 0;
    store.watch = (_key, _owner, callback) => {
      watching += 1;
      wake = callback;
      return () => void (watching -= 1);
    };
    backend = new LockBackend(store);
    await occupy();
    const acquiring = backend.acquire('k', request(10_000));
    await clock.advance(1);
    await store.inner.release('k', 'stranger');
    wake();
    await expect(acquiring).resolves.toMatchObject({ times: { sentAt: 1 } });
    expect(watching).toBe(0);

    store.inner.revoke('k');
    await occupy();
    store.carry = async (call) => {
      const answer = await call();
      await store.inner.release('k', 'stranger');
      wake();
      return answer;
    };
    await expect(backend.acquire('k', request(10_000))).resolves.toMatchObject({ times: { sentAt: 1 } });
  });
});
