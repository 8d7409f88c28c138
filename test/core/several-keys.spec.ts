import { getEventListeners } from 'node:events';
import {
  currentLocks,
  LockConfigurationError,
  type LockHandle,
  LockLostError,
  LockService,
} from 'nestjs-distributed-lock/core';
import { ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';
import { eventually, failureOf } from '../support/index.js';

/** A backend that answers as slowly as the test wants. */
class SlowBackend extends TestLockBackend {
  readonly asked: string[] = [];
  answers: Promise<unknown> = Promise.resolve();

  override async tryAcquire(...request: Parameters<TestLockBackend['tryAcquire']>) {
    this.asked.push(request[0]);
    await this.answers;
    return super.tryAcquire(...request);
  }
}

describe('several keys', () => {
  let backend: SlowBackend;
  let locks: LockService;
  let other: LockService;

  beforeEach(() => {
    backend = new SlowBackend();
    locks = new LockService(backend);
    other = new LockService(backend);
  });
  afterEach(() => Promise.all([locks.close(), other.close()]));

  it('asks for all that may be free at once, in order and each once', async () => {
    let answer = (): void => undefined;
    backend.answers = new Promise<void>((resolve) => (answer = resolve));
    const taken = locks.acquireAll(['c', 'a', 'b', 'a']);
    expect(backend.asked).toEqual(['a', 'b', 'c']);
    answer();
    const set = await taken;
    expect(set.locks.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
    expect(backend.asked).toHaveLength(3);
    await set.release();
    expect(backend.held).toEqual([]);
  });

  it('waits for the first busy key with the smaller ones in hand, and leaves the others to whoever wants them', async () => {
    const busy = await other.acquire('b');
    const taken = locks.acquireAll(['a', 'b', 'c']);
    await expect(other.withLock('c', () => backend.held.toSorted())).resolves.toEqual(['a', 'b', 'c']);
    await busy.release();
    await using set = await taken;
    expect(set.isHeld).toBe(true);
    expect(backend.held.toSorted()).toEqual(['a', 'b', 'c']);
  });

  it('never has callers wait for each other in a circle', async () => {
    const keys = ['a', 'b', 'c', 'd', 'e'];
    const inside = new Set<string>();
    const visit = async (caller: number): Promise<void> => {
      const some = keys.filter((_, place) => (caller * 7 + place * caller) % 3 !== 0);
      const wanted = caller % 4 < 2 ? some : some.toReversed();
      if (wanted.length === 0) return;
      await (caller % 2 === 0 ? locks : other).withLocks(wanted, async () => {
        for (const key of wanted) expect(inside.has(key)).toBe(false);
        for (const key of wanted) inside.add(key);
        await new Promise(setImmediate);
        for (const key of wanted) inside.delete(key);
      });
    };
    await Promise.all(Array.from({ length: 60 }, (_, caller) => visit(caller)));
    expect(backend.held).toEqual([]);
  });

  it('has one deadline for all keys', async () => {
    const clock = new ManualClock();
    const slowly = new TestLockBackend({ clock });
    await using timed = new LockService(slowly, { clock });
    const [freeB] = [await slowly.occupy('b'), await slowly.occupy('c')];
    const failure = failureOf(timed.acquireAll(['a', 'b', 'c'], { waitMs: 100 }));
    await clock.advance(60);
    await freeB();
    await clock.advance(39);
    expect(slowly.held.toSorted()).toEqual(['a', 'b', 'c']);
    await clock.advance(1);
    await expect(failure).resolves.toMatchObject({ code: 'LOCK_TIMEOUT', key: 'c', waitMs: 100 });
    expect(slowly.held).toEqual(['c']);
  });

  it('takes thousands', async () => {
    const keys = Array.from({ length: 5_000 }, (_, i) => `many-${i}`);
    await expect(locks.withLocks(keys, () => currentLocks().length)).resolves.toBe(5_000);
    expect(backend.held).toEqual([]);
  });

  it('leaves no key closed where one was busy, so that the work never began', async () => {
    const busy = await other.acquire('b');
    const kept = { waitMs: 0, minHoldMs: 60_000 };
    await expect(locks.withLocks(['a', 'b'], () => undefined, kept)).rejects.toThrow('"b"');
    await expect(locks.withLocks(['a', 'b', 'c'], () => undefined, kept)).rejects.toThrow('"b"');
    expect(backend.held).toEqual(['b']);
    await busy.release();
    const again = { reentrant: true };
    await locks.withLock(
      'a',
      () => locks.withLocks(['a', 'b'], () => undefined, { minHoldMs: 60_000, ...again }),
      again,
    );
    expect(backend.held).toEqual(['b']);
  });

  it('leaves the keys around it to the work that took them', async () => {
    await using _ = await other.acquire('b');
    const inside = (): Promise<unknown> => locks.withLocks(['a', 'b'], () => undefined, { waitMs: 0, reentrant: true });
    await expect(locks.withLock('a', inside, { minHoldMs: 60_000, reentrant: true })).rejects.toThrow('"b"');
    expect(backend.held).toEqual(['b', 'a']);
  });

  it('waits no longer when it has lost one, and keeps no other', async () => {
    await using _ = await other.acquire('c');
    const failure = failureOf(locks.acquireAll(['a', 'b', 'c'], { waitMs: Infinity }));
    await eventually(() => backend.asked.filter((key) => key === 'c').length > 2);
    backend.revoke('a');
    await expect(failure).resolves.toMatchObject({ code: 'LOCK_LOST', key: 'a' });
    expect(backend.held).toEqual(['c']);
    await expect(other.tryAcquire('b')).resolves.not.toBeNull();
  });

  it('gives all back when its caller gives up', async () => {
    await using _ = await other.acquire('c', { mode: 'shared' });
    const ended = new AbortController();
    const failure = failureOf(locks.acquireAll(['a', 'b', 'c'], { waitMs: Infinity, signal: ended.signal }));
    await eventually(() => backend.asked.filter((key) => key === 'c').length > 2);
    ended.abort(new Error('gone'));
    await expect(failure).resolves.toThrow('gone');
    expect(backend.held).toEqual(['c']);
  });

  it('does not begin with a lock that was lost while it waited for another', async () => {
    const busy = await other.acquire('b');
    let began = false;
    const failure = failureOf(locks.withLocks(['a', 'b'], () => void (began = true)));
    await new Promise(setImmediate);
    backend.revoke('a');
    await busy.release();
    await expect(failure).resolves.toMatchObject({ code: 'LOCK_LOST', key: 'a' });
    expect(began).toBe(false);
    expect(backend.held).toEqual([]);
  });

  it('tells the work of the loss of any key, and gives all back after its end', async () => {
    const work = locks.withLocks(['a', 'b'], async ({ signal, isHeld }) => {
      expect(isHeld).toBe(true);
      expect(currentLocks().map(({ key }) => key)).toEqual(['b', 'a']);
      const told = new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
      backend.revoke('a');
      expect(await told).toMatchObject({ key: 'a', reason: 'revoked' });
      expect(backend.held).toEqual(['b']);
    });
    await expect(work).rejects.toThrow(LockLostError);
    expect(backend.held).toEqual([]);
  });

  it('fails with the error of the key that failed, and keeps nothing', async () => {
    backend.breakDown();
    await expect(locks.acquireAll(['a', 'b'])).rejects.toMatchObject({ code: 'LOCK_BACKEND', key: 'a' });
    backend.repair();
    expect(locks.inspect()).toEqual([]);
    await expect(locks.acquireAll(['a', 'b'], { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow(
      'gone',
    );
  });

  it('takes of each key what it says, or else what the options say', async () => {
    const keys = ['c', { key: 'b', mode: 'exclusive' }, { key: 'a', limit: 3, permits: 2 }, { key: 'd' }] as const;
    await using set = await locks.acquireAll(keys, { mode: 'shared' });
    const shared = { mode: 'shared' };
    const shares = set.locks.map(({ key, share }) => [key, share]);
    const permits = { mode: 'permits', permits: 2, limit: 3 };
    expect(shares).toEqual([
      ['a', permits],
      ['b', undefined],
      ['c', shared],
      ['d', shared],
    ]);
    await using _ = await other.acquireAll([{ key: 'a', limit: 3 }, 'c'], { mode: 'shared', waitMs: 0 });
    await expect(other.tryAcquire('b')).resolves.toBeNull();
  });

  it('takes a key that comes twice once, with the claim that covers the others', async () => {
    const claims = [
      { key: 'a', limit: 5 },
      { key: 'a', limit: 5, permits: 3 },
      { key: 'b', mode: 'shared' },
      'b',
    ] as const;
    for (const keys of [claims, claims.toReversed()]) {
      await using set = await locks.acquireAll([...keys, ...keys]);
      expect(set.locks.map(({ share }) => share)).toEqual([{ mode: 'permits', permits: 3, limit: 5 }, undefined]);
    }
  });

  it('refuses a key with two claims neither of which covers the other, before it asks for any', async () => {
    const keys = [{ key: 'a', mode: 'shared' }, 'b', { key: 'a', limit: 3 }] as const;
    await expect(locks.acquireAll(keys)).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      key: 'a',
      message: expect.stringContaining('"a" is wanted shared and with 1 of 3 permits in one call'),
    });
    expect(backend.asked).toEqual([]);
  });

  it('does not listen any more to a lock around it when it has ended', async () => {
    const again = { reentrant: true };
    const nest = async ({ signal }: LockHandle): Promise<void> => {
      const before = getEventListeners(signal, 'abort').length;
      for (let i = 0; i < 3; i += 1) await locks.withLocks(['a', 'b'], (set) => set.signal.throwIfAborted(), again);
      expect(getEventListeners(signal, 'abort')).toHaveLength(before);
    };
    await locks.withLock('a', nest, again);
  });

  it.each([
    [[], 'several locks need a list of one key or more'],
    ['a', 'several locks need a list of one key or more'],
    [[''], 'must not be empty'],
    [['a', 7], 'must be a string, not number'],
    [[['a']], 'must be a string, not an array'],
    [[null], 'must be a string, not null'],
    [[{ mode: 'shared' }], 'must be a string, not undefined'],
    [[{ key: 'a', ttlMs: 7 }], 'ttlMs is no key option; there are key, mode, limit, permits'],
    [[{ key: 'a', permits: 2 }], 'permits needs a limit'],
    [['a', { key: 'b', limit: 2, mode: 'shared' }], "leave out mode: 'shared'"],
    [['a', { key: 'b', limit: 2, permits: 3 }], 'permits must be a whole number from 1 to 2; it was 3'],
  ])('refuses %j', async (keys, message) => {
    const failure = failureOf(locks.acquireAll(keys as string[]));
    await expect(failure).resolves.toBeInstanceOf(LockConfigurationError);
    await expect(failure).resolves.toMatchObject({ message: expect.stringContaining(message) });
    expect(backend.asked).toEqual([]);
  });
});
