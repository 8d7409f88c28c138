import type { LockHandle } from 'nestjs-distributed-lock/core';
import { failureOf } from '../conformance/contract.js';
import { ServiceWorld } from './service-world.js';

const WITHIN = { withinMs: 5_000 };

describe('a transfer', () => {
  let world = new ServiceWorld();
  let { locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ locks } = world);
  });
  afterEach(() => world.locks.close());

  const adopt = async (lock: LockHandle): Promise<LockHandle> => locks.adopt(await lock.transfer(WITHIN));

  it('goes to the adopter, not to the callers of this process who wait', async () => {
    const lock = await locks.acquire('k');
    const waiting = locks.acquire('k');
    const adopted = await adopt(lock);
    expect(locks.inspect()).toMatchObject([{ key: 'k', fencingToken: adopted.fencingToken }]);
    await expect(locks.tryAcquire('k')).resolves.toBeNull();
    await adopted.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(adopted.fencingToken);
    await next.release();
    expect([locks.inspect(), world.backend.held]).toEqual([[], []]);
  });

  it('hands an adopted lease to no caller of this process', async () => {
    const adopted = await adopt(await locks.acquire('k'));
    const callers = Promise.all(
      Array.from({ length: 5 }, () => locks.withLock('k', ({ fencingToken }) => fencingToken)),
    );
    await adopted.release();
    const tokens = await callers;
    for (const token of tokens) expect(token).toBeGreaterThan(adopted.fencingToken);
    expect(new Set(tokens).size).toBe(5);
  });

  it('is told as a release, and then as an acquisition', async () => {
    const lock = await locks.acquire('k');
    const adopted = await adopt(lock);
    await adopted.release();
    expect(world.events).toMatchObject([
      ['acquired', { from: 'backend' }],
      ['released', { fencingToken: lock.fencingToken }],
      ['acquired', { from: 'transfer', fencingToken: adopted.fencingToken }],
      ['released', { fencingToken: adopted.fencingToken }],
    ]);
  });

  it('inside of withLock ends the lock, and no work is lost', async () => {
    let ticket = '';
    const work = async (lock: LockHandle): Promise<string> => {
      ticket = await lock.transfer(WITHIN);
      return 'done';
    };
    await expect(locks.withLock('k', work)).resolves.toBe('done');
    expect(world.backend.held).toEqual(['k']);
    await (await locks.adopt(ticket)).release();
    expect(world.backend.held).toEqual([]);
  });

  it('is waited for by drain, and ends with the service', async () => {
    const adopted = await adopt(await locks.acquire('k'));
    await expect(locks.drain(0)).resolves.toBe(false);
    await locks.close();
    expect(adopted.signal.reason).toMatchObject({ reason: 'shutdown' });
    expect(world.backend.held).toEqual([]);
    const ticket = 'ticket1.any';
    await expect(locks.adopt(ticket)).rejects.toMatchObject({ option: 'ticket' });
  });

  it('is refused by a service that is closed, and the ticket stays good', async () => {
    const ticket = await (await locks.acquire('k')).transfer(WITHIN);
    const closed = world.service();
    await closed.close();
    await expect(closed.adopt(ticket)).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await (await locks.adopt(ticket)).release();
  });

  it('is refused for a leader, who goes on', async () => {
    const refused = await new Promise<unknown>((resolve) => {
      locks.lead('k', async (term) => resolve(await failureOf(term.transfer(WITHIN))));
    });
    expect(refused).toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'transfer' });
    expect(world.backend.held).toEqual(['k']);
  });

  it('that the backend does not carry out rejects, and frees the key', async () => {
    const lock = await locks.acquire('k');
    world.backend.breakDown();
    const transferring = failureOf(lock.transfer(WITHIN));
    await expect(transferring).resolves.toMatchObject({ code: 'LOCK_BACKEND' });
    world.backend.repair();
    const next = locks.acquire('k');
    await world.clock.advance(2_000);
    await (await next).release();
  });

  it('of a lock that was taken away meanwhile rejects', async () => {
    const lock = await locks.acquire('k', { watchdog: false });
    await world.backend.release('k', (await locks.look('k')).holder?.owner ?? '');
    await expect(lock.transfer(WITHIN)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'revoked' });
  });

  it('gives what the former holder had, whatever claim the options have', async () => {
    const options = locks.resolve({ limit: 3 });
    const adopted = await locks.adopt(await (await locks.acquire('k')).transfer(WITHIN), options);
    expect(adopted.share).toBeUndefined();
    await expect(locks.tryAcquire('k', { limit: 3 })).resolves.toBeNull();
    await adopted.release();
    const permit = await locks.acquire('k', { limit: 3, permits: 2 });
    const adoptedPermit = await locks.adopt(await permit.transfer(WITHIN), locks.resolve());
    expect(adoptedPermit.share).toEqual({ mode: 'permits', limit: 3, permits: 2 });
    await adoptedPermit.release();
  });

  it('is refused with minHoldMs, which it would cut short', async () => {
    const lock = await locks.acquire('k', { minHoldMs: 1_000 });
    await expect(lock.transfer(WITHIN)).rejects.toThrow('minHoldMs');
    await lock.release();
  });

  it('tells observers of an adoption that failed', async () => {
    const ticket = await (await locks.acquire('k')).transfer(WITHIN);
    world.backend.breakDown();
    await expect(locks.adopt(ticket, { waitMs: 0 })).rejects.toThrow(`test could not adopt "k"`);
    expect(world.events.at(-1)).toMatchObject(['backendFailed', { key: 'k', operation: 'adopt' }]);
    world.backend.repair();
    await (await locks.adopt(ticket)).release();
  });

  it('without an answer frees the key even when it takes longer than the TTL', async () => {
    const { backend, clock } = world;
    const passOn = backend.passOn.bind(backend);
    const lock = await locks.acquire('k', { ttlMs: 1_000 });
    backend.passOn = async (...request) => {
      await passOn(...request);
      backend.breakDown();
      throw new Error('the reply was lost');
    };
    await expect(lock.transfer({ withinMs: 3_600_000 })).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    await clock.advance(5_000);
    backend.repair();
    expect(backend.held).toEqual(['k']);
    await clock.advance(2_000);
    expect(backend.held).toEqual([]);
  });

  it('can be repeated as often as a token has room', async () => {
    let lock = await locks.acquire('k');
    for (let i = 0; i < 2_047; i += 1) lock = await adopt(lock);
    await expect(lock.transfer(WITHIN)).rejects.toThrow('transferred too often: 2047 times');
    expect(lock.isHeld).toBe(true);
    await lock.release();
  });
});
