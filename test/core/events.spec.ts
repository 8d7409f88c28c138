import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, type LockEvent, LockService } from 'nestjs-distributed-lock/core';
import { ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';

describe('the stream of events', () => {
  let clock: ManualClock;
  let backend: TestLockBackend;
  let locks: LockService;

  beforeEach(() => {
    clock = new ManualClock();
    backend = new TestLockBackend({ clock });
    locks = new LockService(backend, { clock, defaults: { ttlMs: 30_000 } });
  });
  afterEach(() => locks.close());

  const typesIn = async (stream: AsyncIterable<LockEvent>): Promise<string[]> => {
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    return types;
  };

  it('has what happens from then on, also what comes while nobody reads, until the service is closed', async () => {
    const before = await locks.acquire('a');
    const stream = locks.events();
    await before.release();
    const lock = await locks.acquire('b');
    await expect(stream.next()).resolves.toMatchObject({ value: { type: 'released', key: 'a' } });
    await expect(stream.next()).resolves.toMatchObject({ value: { type: 'acquired', key: 'b', from: 'backend' } });
    const next = stream.next();
    await locks.close();
    const { fencingToken } = lock;
    await expect(next).resolves.toMatchObject({ value: { type: 'lost', key: 'b', fencingToken, reason: 'shutdown' } });
    await expect(typesIn(stream)).resolves.toEqual([]);
    expect(stream.ended).toBe(true);
  });

  it('tells of jeopardy, of safety and of the loss with the state of the hold', async () => {
    const stream = locks.events();
    const { fencingToken } = await locks.acquire('k');
    await stream.next();
    backend.breakDown();
    await clock.advance(10_000);
    const state = { key: 'k', fencingToken };
    const { value: jeopardy } = await stream.next();
    expect(jeopardy).toMatchObject({ type: 'jeopardy', ...state, cause: expect.any(Error) });
    expect(jeopardy).toMatchObject({ heldMs: expect.closeTo(10_000, -4), leftMs: expect.closeTo(19_700, -4) });
    backend.repair();
    await clock.advance(2_000);
    const { value: safe } = await stream.next();
    expect(safe).toMatchObject({ type: 'safe', ...state, leftMs: expect.closeTo(29_698, -4) });
    backend.breakDown();
    await clock.advance(60_000);
    await expect(stream.next()).resolves.toMatchObject({ value: { type: 'jeopardy' } });
    const { value: lost } = await stream.next();
    expect(lost).toMatchObject({ type: 'lost', ...state, reason: 'expired', leftMs: 0 });
  });

  it('ends with its signal, and with the break of its reader', async () => {
    const ended = new AbortController();
    const [signalled, broken] = [locks.events({ signal: ended.signal }), locks.events()];
    const waiting = signalled.next();
    ended.abort();
    await expect(waiting).resolves.toEqual({ done: true, value: undefined });
    await (await locks.acquire('k')).release();
    for await (const event of broken) {
      expect(event.type).toBe('acquired');
      break;
    }
    await expect(broken.next()).resolves.toMatchObject({ done: true });
    await expect(locks.events({ signal: ended.signal }).next()).resolves.toMatchObject({ done: true });
  });

  it('drops the oldest events for a reader that is too slow, and counts them', async () => {
    const stream = locks.events({ limit: 2 });
    for (const key of ['a', 'b', 'c']) await (await locks.acquire(key)).release();
    expect(stream.dropped).toBe(4);
    await expect(stream.next()).resolves.toMatchObject({ value: { type: 'acquired', key: 'c' } });
    expect(() => locks.events({ limit: 0 })).toThrow(LockConfigurationError);
  });
});
