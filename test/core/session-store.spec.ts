import { Deadline, type LeaseAttempt, type LeaseStore, LockService, LockBackend } from 'nestjs-distributed-lock/core';
import { aborted, type Lease } from '../support/index.js';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';

const SESSION_MS = 3_000;

/** A store whose leases live as long as the session, which never ends by itself. */
class SessionStore implements LeaseStore {
  readonly name = 'session';
  readonly guarantee = 'durable';
  readonly traits = { endsWith: 'session' } as const;
  readonly inner: MemoryLeaseStore;
  session = new AbortController();
  beatAt = 0;
  down = false;

  constructor(clock: ManualClock) {
    this.inner = new MemoryLeaseStore(clock);
  }

  async tryAcquire(...[key, owner, , metadata]: Parameters<LeaseStore['tryAcquire']>): Promise<LeaseAttempt> {
    const attempt = await this.inner.tryAcquire(key, owner, Infinity, metadata);
    const known = { ttlMs: SESSION_MS, sentAt: this.beatAt, revoked: this.session.signal };
    return attempt.acquired ? { ...attempt, ...known } : attempt;
  }

  renew(key: string, owner: string): Promise<boolean> {
    return this.inner.renew(key, owner, Infinity);
  }

  async release(key: string, owner: string): Promise<boolean> {
    if (this.down) throw new Error('down');
    return this.inner.release(key, owner);
  }

  async close(): Promise<void> {}
}

describe('a store whose leases live as long as a session', () => {
  let clock: ManualClock;
  let store: SessionStore;
  let locks: LockService;

  const win = async (key: string): Promise<Lease> => {
    const deadline = Deadline.after(0, clock);
    const metadata = { host: 'here', pid: 1 };
    const lease = await new LockBackend(store).acquire(key, { owner: key, ttlMs: 1_000, deadline, metadata });
    if (!lease) throw new Error(`${key} should have been free`);
    return lease;
  };

  beforeEach(() => {
    clock = new ManualClock();
    store = new SessionStore(clock);
    locks = new LockService(store, { clock });
  });
  afterEach(() => locks.close());

  it('says for how long it is trusted, and from when, whatever the caller asks for', async () => {
    await clock.advance(1_000);
    await expect(win('k')).resolves.toMatchObject({ times: { serverTtlMs: SESSION_MS, sentAt: 0 } });
  });

  it('gets a lease back that nobody renews, at its end', async () => {
    const kept = await win('kept');
    await win('forgotten');
    await clock.advance(SESSION_MS - 1);
    expect(store.inner.held()).toEqual(['kept', 'forgotten']);
    await expect(kept.renew()).resolves.toBe(true);
    await clock.advance(1);
    expect(store.inner.held()).toEqual(['kept']);
    await clock.advance(SESSION_MS - 1);
    expect(store.inner.held()).toEqual([]);
  });

  it('gets it back as soon as it can be told, however late', async () => {
    await win('k');
    store.down = true;
    await clock.advance(SESSION_MS * 10);
    expect(store.inner.held()).toEqual(['k']);
    store.down = false;
    await clock.advance(1_000);
    expect(store.inner.held()).toEqual([]);
  });

  it('gets a lock without a watchdog back at its end', async () => {
    const lock = await locks.acquire('k', { watchdog: false });
    await clock.advance(SESSION_MS * 0.98);
    expect([lock.isHeld, store.inner.held()]).toEqual([true, ['k']]);
    await clock.advance(SESSION_MS * 0.02);
    expect([lock.isHeld, store.inner.held()]).toEqual([false, []]);
  });

  it('tells of the end of a session at once, and lets nobody in by one that is over', async () => {
    const lock = await locks.acquire('k');
    const told = aborted(lock.signal);
    store.session.abort();
    await told;
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    const next = locks.acquire('k', { waitMs: 1_000 });
    await clock.advance(50);
    store.session = new AbortController();
    await clock.advance(100);
    expect((await next).isHeld).toBe(true);
    await (await next).release();
  });

  it('waits for the next sign of life where a lock-delay leaves nothing of the last one', async () => {
    await clock.advance(1_000);
    const waiting = locks.acquire('k', { lockDelayMs: 2_500, waitMs: 2_000 });
    await clock.advance(400);
    store.beatAt = clock.now();
    await clock.advance(600);
    await (await waiting).release();
  });

  it('refuses a lock-delay that is no less than the session, and the key is free again', async () => {
    const refused = expect(locks.acquire('k', { lockDelayMs: SESSION_MS })).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      option: 'lockDelayMs',
    });
    await clock.advance(50);
    await refused;
    expect(store.inner.held()).toEqual([]);
  });
});
