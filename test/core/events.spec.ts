import { AsyncLocalStorage } from 'node:async_hooks';
import diagnosticsChannel from 'node:diagnostics_channel';
import { jest } from '@jest/globals';
import { LockConfigurationError, type LockEvent, LockService, type LockTracer } from 'nestjs-distributed-lock/core';
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

  it('ends with the service, also a stream that is made afterwards', async () => {
    const before = locks.events();
    await locks.close();
    await expect(before.next()).resolves.toMatchObject({ done: true });
    await expect(locks.events().next()).resolves.toMatchObject({ done: true });
  });

  it('ends with a service whose backend fails to close', async () => {
    class UnclosableBackend extends TestLockBackend {
      override close(): Promise<void> {
        return Promise.reject(new Error('no goodbye'));
      }
    }
    const unclosable = new LockService(new UnclosableBackend());
    const stream = unclosable.events();
    await expect(unclosable.close()).rejects.toThrow('no goodbye');
    await expect(stream.next()).resolves.toMatchObject({ done: true });
  });

  it('drops the oldest events for a reader that is too slow, and counts them', async () => {
    const stream = locks.events({ limit: 2 });
    for (const key of ['a', 'b', 'c']) await (await locks.acquire(key)).release();
    expect(stream.dropped).toBe(4);
    await expect(stream.next()).resolves.toMatchObject({ value: { type: 'acquired', key: 'c' } });
    expect(() => locks.events({ limit: 0 })).toThrow(LockConfigurationError);
  });

  it('is told to whoever subscribes to the channels of Node, with the backend, and costs nothing else', async () => {
    const told: unknown[] = [];
    const hear = (message: unknown): void => void told.push(message);
    const { subscribe, unsubscribe } = diagnosticsChannel;
    subscribe('nestjs-distributed-lock:released', hear);
    const lock = await locks.acquire('heard');
    await clock.advance(5);
    await lock.release();
    const { fencingToken } = lock;
    unsubscribe('nestjs-distributed-lock:released', hear);
    await (await locks.acquire('unheard')).release();
    expect(told).toEqual([{ backend: locks.backend.name, key: 'heard', fencingToken, heldMs: 5 }]);
  });

  it('lets an observer of a wait abort the wait, or free the key', async () => {
    const held = await locks.acquire('k');
    const controller = new AbortController();
    const stop = locks.observe({ waiting: () => controller.abort(new Error('too long a queue')) });
    const options = { waitMs: Infinity, signal: controller.signal };
    await expect(locks.acquire('k', options)).rejects.toThrow('too long a queue');
    stop();
    let releasePromise: Promise<void> | undefined;
    locks.observe({ waiting: () => void (releasePromise = held.release()) });
    await (await locks.acquire('k')).release();
    await releasePromise;
  });

  it('goes to observers that come later and leave again', async () => {
    const heard: string[] = [];
    const stop = locks.observe({ released: ({ key }) => void heard.push(key) });
    await (await locks.acquire('heard')).release();
    stop();
    await (await locks.acquire('unheard')).release();
    expect(heard).toEqual(['heard']);
  });

  it('lets tracers follow callers in their own context, and whatever they throw disturbs nothing', async () => {
    const caller = new AsyncLocalStorage<string>();
    const told: unknown[] = [];
    const broken: LockTracer = {
      begin() {
        throw new Error('broken');
      },
    };
    const fail = (): unknown => Promise.reject(new Error('broken later'));
    const brokenLater: LockTracer = {
      begin: () => ({ granted: fail, refused: fail, failed: fail }),
      enter: fail,
      leave: fail,
    };
    const tracer: LockTracer = {
      begin: ({ key, waitMs }) => {
        const who = caller.getStore();
        told.push([who, 'asks', key, waitMs]);
        return {
          granted: ({ handOffCount }) => void told.push([who, 'has it', handOffCount]),
          refused: () => void told.push([who, 'does not get it']),
          failed: (error) => void told.push([who, error]),
        };
      },
      run: (hold, work) => caller.run(`inside of ${hold.key}`, work),
    };
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    for (const one of [broken, brokenLater, tracer]) locks.observe({ tracer: one });
    const work = (): string | undefined => caller.getStore();
    const [ann, bob] = ['ann', 'bob'].map((who) => caller.run(who, () => locks.withLock('k', work)));
    await expect(Promise.all([ann, bob])).resolves.toEqual(['inside of k', 'inside of k']);
    await caller.run('eve', () => locks.tryAcquire('k', {}));
    await expect(caller.run('kim', () => locks.tryAcquire('k'))).resolves.toBeNull();
    expect(told).toEqual([
      ['ann', 'asks', 'k', 10_000],
      ['bob', 'asks', 'k', 10_000],
      ['ann', 'has it', 0],
      ['bob', 'has it', 1],
      ['eve', 'asks', 'k', 0],
      ['eve', 'has it', 0],
      ['kim', 'asks', 'k', 0],
      ['kim', 'does not get it'],
    ]);
    expect(warned).toHaveBeenCalledWith('a lock tracer threw: Error: broken');
    expect(warned).toHaveBeenCalledWith('a lock tracer threw: Error: broken later');
    warned.mockRestore();
  });
});
