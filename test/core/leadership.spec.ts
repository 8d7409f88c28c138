import { type Leadership, LockConfigurationError } from 'nestjs-distributed-lock/core';
import { OFFICE_TTL_MS as TTL_MS, OfficeWorld } from './office-world.js';

describe('leadership', () => {
  let { world, clock, office, locks, lead, ends } = new OfficeWorld();

  beforeEach(() => {
    ({ world, clock, office, locks, lead, ends } = new OfficeWorld());
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

  it.each([
    { ttlMs: TTL_MS, withinMs: 1_251 },
    { ttlMs: 500, withinMs: 209 },
  ])('stands again after the backend was down: with a TTL of $ttlMs ms within $withinMs ms', async (how) => {
    world.backend.breakDown(new Error('down'));
    const leadership = lead(locks, { ttlMs: how.ttlMs });
    await clock.advance(60_000);
    expect(leadership.isLeader).toBe(false);
    world.backend.repair();
    await clock.advance(how.withinMs);
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
});
