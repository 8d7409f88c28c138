import {
  type FailureKind,
  type HealthSource,
  LockBackendError,
  LockService,
  ReportedHealth,
  withFailureKind,
} from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { LossyStore } from './lossy-store.js';

/** The health of a backend, told by how its requests end. */
describe('health by outcomes', () => {
  let clock: ManualClock;
  let store: LossyStore;
  let locks: LockService;
  let told: string[];

  beforeEach(() => {
    clock = new ManualClock();
    store = new LossyStore(new MemoryLeaseStore(clock));
    told = [];
    const healthChanged = ({ status, detail }: { status: string; detail?: string }) =>
      void told.push(detail === undefined ? status : `${status}: ${detail}`);
    locks = new LockService(store, { clock, observers: [{ healthChanged }] });
  });
  afterEach(() => locks.close());

  const fails = (kind: FailureKind | undefined, message = 'MISCONF') => {
    store.carry = async () => {
      const error = new Error(message);
      throw kind ? withFailureKind(error, kind) : error;
    };
  };
  /** A service whose store has a health of its own, and the statuses that its observers are told. */
  const serviceWith = (health: HealthSource) => {
    const statuses: string[] = [];
    const observer = { healthChanged: ({ status }: { status: string }) => void statuses.push(status) };
    const service = new LockService(Object.assign(store, { health }), { clock, observers: [observer] });
    return { service, statuses };
  };
  const carriesOut = () => void (store.carry = (call) => call());
  const ask = async (key: string): Promise<unknown> => {
    const asked = locks.tryAcquire(key).catch((error: unknown) => error);
    await clock.advance(5_000);
    return asked;
  };

  it('is up by the first request that was carried out', async () => {
    expect(locks.health).toEqual({ status: 'idle' });
    await locks.withLock('k', () => undefined);
    expect(locks.health).toEqual({ status: 'up' });
  });

  it.each(['refuses', 'silent', 'elsewhere', undefined] as const)(
    'is down when all requests fail (%s), and up by the probe when the server is well again',
    async (kind) => {
      fails(kind);
      for (const key of ['a', 'b']) await expect(ask(key)).resolves.toBeInstanceOf(LockBackendError);
      expect(locks.health.status).not.toBe('down');
      await ask('c');
      expect(locks.health).toEqual({ status: 'down', detail: 'MISCONF' });
      carriesOut();
      await clock.advance(2_000);
      expect(locks.health.status).toBe('up');
      expect(told).toEqual(['down: MISCONF', 'up']);
    },
  );

  it('stays up for an error about the value of one caller, who is told at once', async () => {
    await locks.withLock('k', () => undefined);
    fails('value', 'no such character in LATIN1');
    const asked = store.asked.length;
    for (let i = 0; i < 10; i += 1) await expect(ask(`k${i}`)).resolves.toBeInstanceOf(LockBackendError);
    expect(store.asked.slice(asked).filter((operation) => operation === 'acquire')).toHaveLength(10);
    expect(locks.health).toEqual({ status: 'up' });
    expect(told).toEqual([]);
  });

  it('is not down by a few failures, when a probe is carried out', async () => {
    let failures = 0;
    store.carry = (call, operation) => {
      failures += operation === 'acquire' ? 1 : 0;
      return failures > 3 ? call() : Promise.reject(new Error(operation));
    };
    for (const key of ['a', 'b', 'c']) await ask(key);
    expect(failures).toBe(4);
    expect(told).toEqual([]);
    expect(locks.health.status).not.toBe('down');
  });

  it('stays down while the server renews, releases and reads, and grants nothing (OOM, read-only)', async () => {
    const [held, other] = [await locks.acquire('held', { ttlMs: 6_000 }), await locks.acquire('other')];
    store.carry = (call, operation) => (operation === 'acquire' ? Promise.reject(new Error('OOM')) : call());
    for (const key of ['a', 'b', 'c']) await ask(key);
    expect(locks.health.status).toBe('down');
    await other.release();
    await locks.backend.awaitAndCountOutcome('held', clock, Promise.resolve());
    const renewals = store.asked.filter((operation) => operation === 'renew').length;
    await clock.advance(10_000);
    expect(store.asked.filter((operation) => operation === 'renew').length).toBeGreaterThan(renewals);
    expect(held.isHeld).toBe(true);
    expect(told).toEqual(['down: OOM']);
    carriesOut();
    await clock.advance(2_000);
    expect(told).toEqual(['down: OOM', expect.stringMatching(/^up/u)]);
  });

  it('is down when the probe is refused for its own key, as by rights to a namespace only', async () => {
    let failures = 0;
    store.carry = async (_call, operation) => {
      failures += operation === 'acquire' ? 1 : 0;
      throw withFailureKind(new Error(`failure ${failures}`), failures > 3 ? 'value' : 'refuses');
    };
    for (const key of ['a', 'b', 'c']) await ask(key);
    expect(failures).toBeGreaterThan(3);
    expect(locks.health).toEqual({ status: 'down', detail: 'failure 3' });
    carriesOut();
    await locks.withLock('k', () => undefined);
    expect(locks.health.status).toBe('up');
  });

  it('stays down when the connection is lost and made anew before the probe is answered, and the probe fails', async () => {
    const health = new ReportedHealth();
    let failProbe: () => void = () => undefined;
    const probed = new Promise<never>((_, reject) => (failProbe = () => reject(new Error('READONLY'))));
    let attempts = 0;
    store.carry = (_call, operation) => {
      attempts += operation === 'acquire' ? 1 : 0;
      return attempts > 3 ? probed : Promise.reject(new Error('READONLY'));
    };
    const { service, statuses } = serviceWith(health);
    const askIt = (key: string) => service.tryAcquire(key).catch(() => undefined);
    const asked = Promise.all(['a', 'b', 'c'].map(askIt));
    await clock.advance(5_000);
    await asked;
    expect(attempts).toBe(4);
    health.report('down', 'the connection is lost');
    health.report('up');
    expect(statuses).toEqual(['down']);
    failProbe();
    await clock.advance(0);
    expect(service.health).toEqual({ status: 'down', detail: 'READONLY' });
    carriesOut();
    await clock.advance(2_000);
    expect(statuses).toEqual(['down', 'up']);
    await service.close();
  });

  it('is up after a refusal that cost the connection only when the new connection carries a request out', async () => {
    const health = new ReportedHealth();
    fails('elsewhere', 'READONLY');
    const { service, statuses } = serviceWith(health);
    const asked = service.tryAcquire('a').catch(() => undefined);
    await clock.advance(0);
    const requests = store.asked.length;
    health.report('down', 'the connection is lost');
    // The store may fail at once whatever is sent now.
    expect(store.asked).toHaveLength(requests);
    health.report('up');
    await clock.advance(1_000);
    expect(statuses).toEqual(['down']);
    carriesOut();
    await clock.advance(2_000);
    expect(statuses).toEqual(['down', 'up']);
    await asked;
    await service.close();
  });

  it('believes a new connection after one refusal where the probe is refused for its own key', async () => {
    const health = new ReportedHealth();
    const { service } = serviceWith(health);
    const lock = await service.acquire('held', { ttlMs: 9_000 });
    store.carry = async (_call, operation) => {
      throw withFailureKind(new Error('READONLY'), operation === 'acquire' ? 'value' : 'elsewhere');
    };
    await clock.advance(3_100);
    health.report('down', 'the connection is lost');
    health.report('up');
    await clock.advance(0);
    expect(service.health.status).toBe('up');
    carriesOut();
    await clock.advance(1_000);
    expect(lock.isHeld).toBe(true);
    await service.close();
  });

  it('is up by a renewal where the probe had no answer, or was refused for its own key', async () => {
    const held = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key, { ttlMs: 9_000 })));
    let probes = 0;
    store.carry = async (_call, operation) => {
      if (operation !== 'acquire') throw withFailureKind(new Error('READONLY'), 'elsewhere');
      probes += 1;
      throw withFailureKind(new Error('no answer, or NOPERM'), probes === 1 ? 'silent' : 'value');
    };
    await clock.advance(3_300);
    expect(locks.health.status).toBe('down');
    expect(probes).toBeGreaterThan(1);
    const refuseProbe = () => Promise.reject(withFailureKind(new Error('NOPERM'), 'value'));
    store.carry = (call, operation) => (operation === 'acquire' ? refuseProbe() : call());
    await clock.advance(3_000);
    expect(held.map(({ isHeld }) => isHeld)).toEqual([true, true, true]);
    expect(locks.health.status).toBe('up');
  });

  it('believes a new connection after a failure of long ago', async () => {
    const health = new ReportedHealth();
    fails('elsewhere', 'MOVED');
    const { service, statuses } = serviceWith(health);
    await Promise.all([service.tryAcquire('a').catch(() => undefined), clock.advance(200)]);
    carriesOut();
    await clock.advance(3_000);
    health.report('down', 'the connection is lost');
    health.report('up');
    expect(statuses).toEqual(['down', 'up']);
    expect(service.health.status).toBe('up');
    await service.close();
  });

  it('believes a store that reports `down` for a moment and is up, as a cluster does that lost one node', async () => {
    let report: Parameters<HealthSource['onChange']>[0] = () => undefined;
    const onChange: HealthSource['onChange'] = (listener) => {
      report = listener;
      return () => undefined;
    };
    fails('elsewhere', 'MOVED');
    const { service, statuses } = serviceWith({ current: { status: 'up' }, onChange });
    const asked = service.tryAcquire('a').catch(() => undefined);
    await clock.advance(0);
    report({ status: 'down' });
    report({ status: 'up' });
    expect(statuses.at(-1)).toBe('up');
    carriesOut();
    await clock.advance(1_000);
    await asked;
    await service.close();
  });

  it('is not down by one failure after the end of others, though the probe of those fails still', async () => {
    fails('refuses');
    for (const key of ['a', 'b', 'c']) await ask(key);
    store.carry = (call, operation) => (operation === 'acquire' ? Promise.reject(new Error('of the probe')) : call());
    await clock.advance(5_000);
    let acquisitions = 0;
    store.carry = (call, operation) => {
      acquisitions += operation === 'acquire' ? 1 : 0;
      return operation !== 'acquire' || acquisitions === 1 ? call() : Promise.reject(new Error('of one key'));
    };
    await locks.tryAcquire('works');
    await Promise.all([locks.tryAcquire('fails').catch(() => undefined), clock.advance(0)]);
    expect(acquisitions).toBe(2);
    await clock.advance(1_500);
    expect(told).toEqual(['down: MISCONF', 'up']);
  });

  it('is not up by a request that was not sent, as when all connections of a pool are in use', async () => {
    fails('refuses');
    for (const key of ['a', 'b', 'c']) await ask(key);
    const tryAcquire = store.tryAcquire.bind(store);
    const obstacle = new Error('all connections are in use');
    store.tryAcquire = (key, ...rest) =>
      key === 'unsent' ? Promise.resolve({ acquired: false, retryAfterMs: null, obstacle }) : tryAcquire(key, ...rest);
    await ask('unsent');
    const waiting = locks.acquire('unsent', { waitMs: 4_000 }).catch((error: unknown) => error);
    await clock.advance(5_000);
    await expect(waiting).resolves.toMatchObject({ code: 'LOCK_BACKEND', cause: obstacle });
    expect(told).toEqual(['down: MISCONF']);
  });

  it('sends no probe after the close', async () => {
    fails('refuses');
    for (const key of ['a', 'b', 'c']) await ask(key);
    expect(locks.health.status).toBe('down');
    const closed = locks.close();
    const asked = store.asked.filter((operation) => operation === 'acquire').length;
    await clock.advance(5_000);
    await closed;
    expect(store.asked.filter((operation) => operation === 'acquire')).toHaveLength(asked);
  });

  it('mentions failures while more than one request in ten fails', async () => {
    let count = 0;
    store.carry = (call, operation) => {
      count += 1;
      return count % 5 === 0 ? Promise.reject(new Error(`CROSSSLOT ${operation}`)) : call();
    };
    for (let i = 0; i < 40; i += 1) await ask(`k${i}`);
    expect(locks.health).toEqual({
      status: 'up',
      detail: expect.stringMatching(/^\d+ of the last \d+ requests failed: CROSSSLOT /u),
    });
    carriesOut();
    await clock.advance(61_000);
    expect(locks.health).toEqual({ status: 'up' });
  });
});
