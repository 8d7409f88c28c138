import { type Leadership, type LockHandle, LockService, LockShutdownError } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { setTimeout as sleep } from 'node:timers/promises';
import { LossyStore } from './lossy-store.js';
import { Office, OFFICE_TTL_MS as TTL_MS, OfficeWorld } from './office-world.js';

describe('the end of a leadership', () => {
  let { world, clock, office, locks, lead, ends } = new OfficeWorld();

  beforeEach(() => {
    ({ world, clock, office, locks, lead, ends } = new OfficeWorld());
  });

  it('resigns: the signal, then the work ends under the lock, then the next one leads, and it stands behind', async () => {
    const other = world.service();
    const next = new Office();
    const leadership = lead();
    await clock.advance(0);
    other.lead('chief', next.work, { ttlMs: TTL_MS });
    const resigned = leadership.resign();
    expect([office.reasons, leadership.isLeader, office.terms[0]?.isHeld]).toEqual([['resigned'], false, true]);
    office.terms[0]?.assertHeld();
    await clock.advance(TTL_MS * 2);
    expect([office.terms[0]?.isHeld, next.terms]).toEqual([true, []]);
    office.end();
    await resigned;
    await clock.advance(0);
    expect(next.terms).toHaveLength(1);
    next.end();
    await clock.advance(1_000);
    expect([office.terms.length, ends]).toEqual([2, ['resigned']]);
  });

  it('hands the office on at once, also where the locks of its service have a shortest hold', async () => {
    const keeps = world.service({ defaults: { minHoldMs: 600_000 } });
    const leadership = keeps.lead('chief', office.obedient, { ttlMs: TTL_MS });
    await clock.advance(0);
    await leadership.close();
    expect(world.backend.held).toEqual([]);
  });

  it('lets nobody ask first once it stands no more, on a store that keeps no line', async () => {
    const service = new LockService(new LossyStore(new MemoryLeaseStore(clock)), { clock });
    const leadership = lead(service);
    await clock.advance(0);
    office.end();
    await leadership.close();
    let taken: LockHandle | undefined;
    void service.acquire('chief').then((lock) => (taken = lock));
    await clock.advance(0);
    expect(taken?.isHeld).toBe(true);
  });

  it('resigns in an observer of the beginning, and resolves when the work has ended', async () => {
    const told: string[] = [];
    const leadership = world
      .service({ observers: [{ termBegan: () => void leadership.resign().then(() => told.push('resigned')) }] })
      .lead('chief', async ({ signal }) => {
        told.push(`begins, ${signal.aborted ? 'told to end' : 'untold'}`);
        await new Promise(setImmediate);
        told.push('ends');
      });
    await clock.advance(0);
    await new Promise(setImmediate);
    await clock.advance(0);
    expect(told).toEqual(['begins, told to end', 'ends', 'resigned']);
    await leadership.close();
  });

  it("takes the AbortError of Node's own modules for the end of the work, and for no failure", async () => {
    const leadership = locks.lead('chief', ({ signal }) => sleep(600_000, undefined, { signal }), { ttlMs: TTL_MS });
    await clock.advance(0);
    await leadership.close();
    expect(ends).toEqual(['resigned']);
  });

  it('resigns and closes from inside the work without waiting for itself', async () => {
    const leadership: Leadership = locks.lead('chief', async () => {
      await leadership.resign();
      await leadership.close();
    });
    await clock.advance(0);
    expect([ends, locks.leadership('chief')]).toEqual([['resigned'], undefined]);
  });

  it('closes for good, by its method or its signal', async () => {
    const leaves = new AbortController();
    const leadership = lead(locks, { signal: leaves.signal });
    await clock.advance(0);
    leaves.abort();
    expect(office.reasons).toEqual(['resigned']);
    office.end();
    await leadership.close();
    await clock.advance(TTL_MS);
    expect([world.backend.held, office.terms.length, locks.leadership('chief')]).toEqual([[], 1, undefined]);
    await using waiting = lead();
    await clock.advance(0);
    const candidate = lead(world.service());
    await clock.advance(0);
    await candidate.close();
    expect(waiting.isLeader).toBe(true);
    office.end();
  });

  it('its key stays taken while the work ignores the signal', async () => {
    const leadership = lead(locks, { graceMs: 2_000 });
    await clock.advance(0);
    let closed = false;
    const closing = leadership.close().then(() => (closed = true));
    await clock.advance(1_999);
    expect(closed).toBe(false);
    await clock.advance(1);
    await closing;
    await clock.advance(5 * TTL_MS);
    expect(world.backend.held).toEqual(['chief']);
    office.end();
    await clock.advance(0);
    expect(world.backend.held).toEqual([]);
  });

  for (const how of ['close', 'shutdown'] as const) {
    it(`at a ${how} of the service: the signal, then the work ends, then the key is released`, async () => {
      lead();
      await clock.advance(0);
      let over = false;
      const ended = locks[how]().then(() => (over = true));
      expect([office.reasons, office.terms[0]?.isHeld]).toEqual([['shutdown'], true]);
      await clock.advance(4_000);
      expect([over, world.backend.held]).toEqual([false, ['chief']]);
      office.end();
      await ended;
      expect([world.backend.held, ends]).toEqual([[], ['shutdown']]);
      expect(() => locks.lead('chief', office.work)).toThrow(LockShutdownError);
    });

    it(`at a ${how} of the service work that goes on keeps its key until the TTL, or its end`, async () => {
      lead();
      await clock.advance(0);
      const ended = locks[how]();
      await clock.advance(10_000);
      await ended;
      expect(world.backend.held).toEqual(['chief']);
      office.end();
      await clock.advance(0);
      expect(world.backend.held).toEqual([]);
    });
  }

  it('a closing service gives back what others hold at once, and candidates leave the line', async () => {
    await using holder = await world.service().acquire('chief', { ttlMs: TTL_MS });
    const candidate = lead();
    const plain = await locks.acquire('other');
    const shop = locks.lead('shop', office.work);
    await clock.advance(0);
    const closing = locks.close();
    await clock.advance(0);
    expect(plain.signal.aborted).toBe(true);
    expect(world.backend.held).toEqual(['chief', 'shop']);
    office.end();
    await closing;
    await holder.release();
    expect([candidate.isLeader, shop.isLeader, world.backend.held]).toEqual([false, false, []]);
  });
});
