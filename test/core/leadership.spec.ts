import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Holder,
  type Leadership,
  LockConfigurationError,
  type LockHandle,
  type LockService,
  LockShutdownError,
} from 'nestjs-distributed-lock/core';
import type { ManualClock } from 'nestjs-distributed-lock/testing';
import { ServiceWorld } from './service-world.js';

const TTL_MS = 30_000;

/** Work that goes on until its test ends it, and notes when it begins, hears its signal and ends. */
class Office {
  readonly notes: string[] = [];
  readonly terms: LockHandle[] = [];
  inside = 0;
  most = 0;
  #end: (outcome: Error | undefined) => void = () => undefined;

  readonly work = async (term: LockHandle): Promise<void> => {
    this.terms.push(term);
    this.notes.push('work');
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    term.signal.addEventListener('abort', () => this.notes.push('signal'));
    try {
      const error = await new Promise<Error | undefined>((resolve) => (this.#end = resolve));
      if (error) throw error;
    } finally {
      this.inside -= 1;
      this.notes.push('ended');
    }
  };

  /** As work that heeds its signal. */
  readonly obedient = (term: LockHandle): Promise<void> => {
    term.signal.addEventListener('abort', () => this.end());
    return this.work(term);
  };

  end(outcome?: Error): void {
    this.#end(outcome);
  }

  get reasons(): unknown[] {
    return this.terms.map(({ signal }) => (signal.aborted ? signal.reason.reason : undefined));
  }
}

describe('leadership', () => {
  let world: ServiceWorld;
  let clock: ManualClock;
  let office: Office;
  let locks: LockService;
  let lead: (service?: LockService, options?: Parameters<LockService['lead']>[2]) => Leadership;
  let ends: unknown[];

  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock } = world);
    office = new Office();
    ends = [];
    const note = { termEnded: ({ reason, error }: { reason: string; error?: unknown }) => ends.push(error ?? reason) };
    locks = world.service({ observers: [note] });
    lead = (service = locks, options = {}) => service.lead('chief', office.work, { ttlMs: TTL_MS, ...options });
  });

  it('leads with a lock, whose token is the epoch, as exactly as that lock is held', async () => {
    const leadership = lead();
    expect(leadership.isLeader).toBe(false);
    await clock.advance(0);
    expect(leadership.isLeader).toBe(true);
    expect(world.backend.held).toEqual(['chief']);
    expect(office.terms[0]?.fencingToken).toBeGreaterThan(0n);
    expect(locks.leadership('chief')).toBe(leadership);
    clock.stall(TTL_MS);
    expect([leadership.isLeader, office.terms[0]?.isHeld, office.terms[0]?.signal.aborted]).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('at a loss: the signal, then the work is awaited, then the next candidacy', async () => {
    const leadership = lead();
    await clock.advance(0);
    world.backend.revoke('chief');
    expect(office.notes).toEqual(['work', 'signal']);
    expect(leadership.isLeader).toBe(false);
    await clock.advance(10 * TTL_MS);
    expect(office.notes).toEqual(['work', 'signal']);
    expect(world.backend.held).toEqual([]);
    office.end();
    await clock.advance(0);
    expect(office.notes).toEqual(['work', 'signal', 'ended', 'work']);
    expect(leadership.isLeader).toBe(true);
    expect(office.terms[1]?.fencingToken).toBeGreaterThan(office.terms[0]?.fencingToken ?? 0n);
    expect(ends).toEqual(['revoked']);
  });

  it('is led by one at a time, and by the next as soon as the work returns', async () => {
    const others = [world.service(), world.service()];
    const standing = [locks, ...others].map((service) => lead(service));
    await clock.advance(0);
    for (const chosen of [0, 1, 2, 0, 1]) {
      expect(standing.map(({ isLeader }) => isLeader)).toEqual([0, 1, 2].map((place) => place === chosen));
      await clock.advance(2_000);
      office.end();
      await clock.advance(0);
    }
    expect(office.most).toBe(1);
  });

  it('a short term is followed by a pause, so that work which returns at once is no burden to the server', async () => {
    let terms = 0;
    locks.lead('chief', () => (terms += 1), { ttlMs: TTL_MS });
    await clock.advance(10_000);
    expect(terms).toBeGreaterThanOrEqual(10);
    expect(terms).toBeLessThanOrEqual(11);
    terms = 0;
    locks.lead('quick', () => (terms += 1), { ttlMs: 300 });
    await clock.advance(1_000);
    expect(terms).toBeGreaterThanOrEqual(10);
  });

  it('work that throws: told, released, and stands again later each time', async () => {
    const failure = new Error('no disk');
    lead();
    await clock.advance(0);
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      const terms = office.terms.length;
      office.end(failure);
      await clock.advance(seconds * 750 - 10);
      expect([office.terms.length, world.backend.held]).toEqual([terms, []]);
      await clock.advance(seconds * 500 + 20);
      expect(office.terms).toHaveLength(terms + 1);
    }
    expect(ends).toEqual(Array.from({ length: 7 }, () => failure));
    // A term that lasts is a fresh start.
    await clock.advance(60_000);
    office.end(failure);
    await clock.advance(1_251);
    expect(office.terms).toHaveLength(9);
  });

  it('an error after the signal that is not the abort is told, too', async () => {
    lead();
    await clock.advance(0);
    world.backend.revoke('chief');
    office.end(new Error('could not save'));
    await clock.advance(0);
    expect(ends).toEqual([expect.objectContaining({ message: 'could not save' })]);
    await clock.advance(1_000);
    world.backend.revoke('chief');
    office.end(office.terms[1]?.signal.reason);
    await clock.advance(0);
    expect(ends).toEqual([expect.anything(), 'revoked']);
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

  it('stands again after the backend was down', async () => {
    const down = new Error('down');
    world.backend.breakDown(down);
    const leadership = lead();
    await clock.advance(60_000);
    expect(leadership.isLeader).toBe(false);
    world.backend.repair();
    await clock.advance(4_000);
    expect(leadership.isLeader).toBe(true);
    office.end();
  });

  it('refuses what can never work', async () => {
    const bad = (key: unknown, work: unknown = office.work, options: unknown = {}): (() => Leadership) => {
      return () => locks.lead(key as string, work as () => void, options as object);
    };
    const refusals = [
      bad(''),
      bad(1),
      bad('k', 'work'),
      bad('chief'),
      bad('k', undefined, { waitMs: 1 }),
      bad('k', undefined, { ttlMs: 0 }),
      bad('k', undefined, { graceMs: -1 }),
      bad('k', undefined, { signal: 'no' }),
      bad('k', undefined, null),
    ];
    lead();
    for (const refused of refusals) expect(refused).toThrow(LockConfigurationError);
    expect(() => locks.lead('chief', office.work)).toThrow('this service stands for "chief" already');
    expect(() => locks.lead('k', office.work, { signal: AbortSignal.abort() })).toThrow('aborted');
  });

  describe('who leads', () => {
    const labelled = (label: string): LockService => world.service({ label });

    it('is one reading', async () => {
      const [mine, theirs] = ['a', 'b'].map((label) => labelled(label).lead('chief', office.obedient)) as [
        Leadership,
        Leadership,
      ];
      await clock.advance(0);
      await expect(mine.leader()).resolves.toMatchObject({ label: 'a', pid: process.pid });
      await expect(theirs.leader()).resolves.toMatchObject({ label: 'a', pid: process.pid });
      await theirs.close();
      await mine.resign();
      await expect(mine.leader()).resolves.toBeUndefined();
      world.backend.breakDown(new Error('down'));
      await expect(mine.leader()).rejects.toThrow('test could not read the holder of "chief": down');
    });

    it('is told when it changes: here at once, elsewhere within a third of the TTL', async () => {
      const [a, b] = [labelled('a'), labelled('b')];
      const mine = a.lead('chief', office.obedient, { ttlMs: TTL_MS });
      const told: string[] = [];
      const stop = new AbortController();
      const reading = (async () => {
        for await (const holder of mine.changes({ signal: stop.signal })) told.push(holder?.label ?? 'nobody');
      })();
      await clock.advance(0);
      await mine.resign();
      await clock.advance(1_000);
      expect(told.filter((who) => who !== 'nobody')).toEqual(['a', 'a']);
      const theirs = b.lead('chief', new Office().obedient, { ttlMs: TTL_MS });
      await mine.resign();
      await clock.advance(500);
      expect([theirs.isLeader, told.at(-1)]).toEqual([true, 'b']);
      await theirs.resign();
      await clock.advance(500);
      expect([mine.isLeader, told.at(-1)]).toEqual([true, 'a']);
      const [before, timers] = [told.length, world.backend.held];
      await clock.advance(5 * TTL_MS);
      expect([told.length, timers]).toEqual([before, ['chief']]);
      stop.abort();
      await reading;
    });

    it('is told by readings that miss nothing which happens here meanwhile, and end with the reader', async () => {
      const holder = await labelled('b').acquire('chief', { ttlMs: TTL_MS });
      const mine = labelled('a').lead('chief', office.obedient, { ttlMs: TTL_MS });
      const changes = mine.changes();
      await expect(changes.next()).resolves.toMatchObject({ value: { label: 'b' } });
      await holder.release();
      await clock.advance(0);
      await expect(changes.next()).resolves.toMatchObject({ value: { label: 'a' } });
      await changes.return?.();
      await expect(changes.next()).resolves.toEqual({ done: true, value: undefined });
      await mine.close();
      await expect(mine.changes().next()).resolves.toMatchObject({ done: true });
    });

    it('is told no more after a close, though the work goes on', async () => {
      const mine = labelled('a').lead('chief', office.work, { ttlMs: TTL_MS, graceMs: 1_000 });
      await clock.advance(0);
      const changes = mine.changes();
      await expect(changes.next()).resolves.toMatchObject({ value: { label: 'a' } });
      const last = changes.next();
      void mine.close();
      await clock.advance(1_000);
      await expect(last).resolves.toEqual({ done: true, value: undefined });
      office.end();
    });

    it('is nobody that is known of once no reading has gone through for a TTL', async () => {
      await labelled('b').acquire('chief', { ttlMs: TTL_MS });
      const mine = labelled('a').lead('chief', office.obedient, { ttlMs: TTL_MS });
      const told: (Holder | undefined)[] = [];
      void (async () => {
        for await (const holder of mine.changes()) told.push(holder);
      })();
      await clock.advance(0);
      world.backend.breakDown(new Error('down'));
      await clock.advance(TTL_MS - 1);
      expect(told).toHaveLength(1);
      await clock.advance(TTL_MS / 3);
      expect(told).toEqual([expect.objectContaining({ label: 'b' }), undefined]);
      await mine.close();
    });

    it('is refused with a backend that cannot tell', async () => {
      Object.defineProperty(world.backend, 'whoHolds', { value: undefined });
      const leadership = locks.lead('chief', office.obedient);
      await clock.advance(0);
      expect(() => leadership.changes()).toThrow(LockConfigurationError);
      await leadership.resign();
      await expect(leadership.leader()).rejects.toThrow('test cannot tell who holds a key');
      await leadership.close();
    });
  });
});
