import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { currentLocks, LockConfigurationError, LockLostError, LockService } from 'nestjs-distributed-lock/core';
import { ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';
import { failureOf } from '../conformance/contract.js';

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
    await expect(failure).resolves.toMatchObject({ code: 'LOCK_TIMEOUT', key: 'c' });
    expect(slowly.held).toEqual(['c']);
  });

  it('leaves no key closed where one was busy, so that the work never began', async () => {
    const busy = await other.acquire('b');
    const kept = { waitMs: 0, minHoldMs: 60_000 };
    await expect(locks.withLocks(['a', 'b'], () => undefined, kept)).rejects.toThrow('"b"');
    await expect(locks.withLocks(['a', 'b', 'c'], () => undefined, kept)).rejects.toThrow('"b"');
    expect(backend.held).toEqual(['b']);
    await busy.release();
    await locks.withLock('a', () => locks.withLocks(['a', 'b'], () => undefined, { minHoldMs: 60_000 }));
    expect(backend.held).toEqual(['b']);
  });

  it('leaves the keys around it to the work that took them', async () => {
    await using _ = await other.acquire('b');
    const inside = (): Promise<unknown> => locks.withLocks(['a', 'b'], () => undefined, { waitMs: 0 });
    await expect(locks.withLock('a', inside, { minHoldMs: 60_000 })).rejects.toThrow('"b"');
    expect(backend.held).toEqual(['b', 'a']);
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

  it.each([[[]], [['']], [['a', 7]], ['a']])('refuses %j', async (keys) => {
    await expect(locks.acquireAll(keys as string[])).rejects.toThrow(LockConfigurationError);
  });
});
