import { randomInt } from 'node:crypto';
import { getEventListeners, setMaxListeners } from 'node:events';
import { LockBackendError, LockDeadlockError, LockShutdownError, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { aborted, eventually, failureOf, Gate, handled, SLACK_MS, type Suite, timeLimitOf } from '../support/index.js';
import { liveBytes } from '../support/live-bytes.js';
import type { FaultTheme } from './fault-theme.js';
import { whenFrozen } from './when-frozen.js';

/** Longer than any of these tests. */
const LONG_TTL_MS = 60_000;

export const callers: FaultTheme = {
  title: 'what callers do',
  sessionTtlMs: LONG_TTL_MS,
  declare(suite) {
    tooManyWaiters(suite);
    givingUp(suite);
    releasing(suite);
    failing(suite);
  },
};

function tooManyWaiters({ harness, it, alone }: Suite): void {
  // Each one of them a transaction.
  const crowdSize = harness.transactional === true ? 300 : 10_000;

  alone(
    `A16: ${crowdSize} waiters for one key all get it, in order, and cost the server next to nothing`,
    async (contract) => {
      const [holder, crowd] = [await contract.service(), await contract.service({ maxHandOffMs: Infinity })];
      const key = contract.key();
      const options = { ttlMs: LONG_TTL_MS, waitMs: LONG_TTL_MS };
      const lock = await holder.acquire(key, options);
      const heapBefore = liveBytes();
      let served = 0;
      let inOrder = true;
      const waiters = Array.from({ length: crowdSize }, (_, place) =>
        crowd.withLock(
          key,
          () => {
            inOrder &&= served === place;
            served += 1;
          },
          options,
        ),
      );
      const bytes = liveBytes() - heapBefore;
      await lock.release();
      await Promise.all(waiters);
      // A connection and what the first call loads are no waiter's.
      expect(bytes).toBeLessThan(500_000 + crowdSize * 6_000);
      expect({ served, inOrder }).toEqual({ served: crowdSize, inOrder: true });
      await expect(contract.harness.leftovers(key)).resolves.toEqual([]);
    },
  );

  it('A16: those beyond maxWaiters are refused at once', async (contract) => {
    const [holder, crowd] = [await contract.service(), await contract.service({ maxWaiters: 3 })];
    const key = contract.key();
    const options = { ttlMs: LONG_TTL_MS, waitMs: LONG_TTL_MS };
    const lock = await holder.acquire(key, options);
    const waiting = Array.from({ length: 4 }, () => handled(crowd.withLock(key, () => 'served', options)));
    const error = await failureOf(crowd.acquire(key, options));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(String(error)).toContain('maxWaiters');
    await lock.release();
    await expect(Promise.all(waiting)).resolves.toEqual(['served', 'served', 'served', 'served']);
  });
}

function givingUp({ harness, it }: Suite): void {
  it('A17: waits given up at random points leave nothing, and grants that arrived meanwhile are given back', async (contract) => {
    const services = [await contract.service(), await contract.service(), await contract.service()];
    // Connections are opened before anybody is impatient.
    for (const service of services) await (await service.acquire(contract.key())).release();
    const key = contract.key();
    const gaveUp: AbortSignal[] = [];
    const outcomes = { entered: 0, abandoned: 0, late: 0 };
    const attempt = async (place: number): Promise<void> => {
      // One caller of each round waits until it is served, however busy the machine is.
      const patient = place === 29;
      const impatient = place % 5 === 0;
      const longMs = timeLimitOf(10_000);
      const signal = AbortSignal.timeout(patient || impatient ? longMs : randomInt(40));
      gaveUp.push(signal);
      const waitMs = impatient ? 60 : longMs;
      try {
        await services[place % 3]?.withLock(key, () => new Promise(setImmediate), {
          waitMs,
          signal,
          ttlMs: LONG_TTL_MS,
        });
        outcomes.entered += 1;
      } catch (error) {
        // On a busy machine a database may seem silent to whoever asks it right before his time is up.
        if (error instanceof LockTimeoutError || (impatient && error instanceof LockBackendError)) outcomes.late += 1;
        else if (error === signal.reason) outcomes.abandoned += 1;
        else throw error;
      }
    };
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(Array.from({ length: 30 }, (_, place) => attempt(place)));
    }
    expect(outcomes.entered + outcomes.abandoned + outcomes.late).toBe(600);
    expect(outcomes.entered).toBeGreaterThanOrEqual(20);
    expect(outcomes.abandoned).toBeGreaterThan(0);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    expect(gaveUp.flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([]);
    await (await services[0]?.acquire(key, { waitMs: timeLimitOf(1_000) }))?.release();
  });

  it('A17: one signal for a thousand waits collects no listeners', async (contract) => {
    const service = await contract.service();
    const key = contract.key();
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const lock = await service.acquire(key, { ttlMs: LONG_TTL_MS });
    const waits = Array.from({ length: 500 }, () => failureOf(service.acquire(key, { waitMs: 20, signal })));
    await Promise.all(waits);
    await lock.release();
    for (let i = 0; i < 500; i += 1) await (await service.acquire(key, { signal })).release();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
}

function releasing({ it, revoking }: Suite): void {
  it('A18: release twice and ten times at once is told once, and frees one lock only', async (contract) => {
    const released: bigint[] = [];
    const observers = [{ released: ({ fencingToken }: { fencingToken: bigint }) => released.push(fencingToken) }];
    const [ours, theirs] = [await contract.service({ observers }), await contract.service()];
    const key = contract.key();
    const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    const next = theirs.acquire(key, { ttlMs: LONG_TTL_MS });
    await Promise.all(Array.from({ length: 10 }, () => lock.release()));
    const present = await next;
    await Promise.all(Array.from({ length: 10 }, () => lock.release()));
    expect(present.isHeld).toBe(true);
    await expect(ours.tryAcquire(key)).resolves.toBeNull();
    expect(released).toEqual([lock.fencingToken]);
    await present.release();
  });

  revoking('A19: release after a loss answers at once, and does not touch the lock of the next', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    // Long enough for a process that gets no processor before it revokes.
    const lock = await ours.acquire(key, { ttlMs: Math.max(6_000, contract.harness.shortTtlMs) });
    await contract.harness.revoke(key);
    const next = await theirs.acquire(key, { ttlMs: LONG_TTL_MS });
    await aborted(lock.signal);
    const since = performance.now();
    await Promise.all([lock.release(), lock.release()]);
    expect(performance.now() - since).toTakeLessThan(SLACK_MS);
    expect(next.isHeld).toBe(true);
    await expect(ours.tryAcquire(key)).resolves.toBeNull();
    await next.release();
  });
}

function failing({ harness, it, alone }: Suite): void {
  alone(
    'A20: when the work throws and the release fails too, the error of the work wins and observers hear of the other',
    async (contract) => {
      const failures: string[] = [];
      const observers = [{ backendFailed: ({ operation }: { operation: string }) => failures.push(operation) }];
      const service = await contract.service({ observers });
      const own = new Error('the work failed');
      await whenFrozen(
        contract,
        service,
        () => Promise.reject(own),
        (work) => expect(failureOf(work)).resolves.toBe(own),
      );
      await eventually(() => expect(failures).toContain('release'));
    },
  );

  if (harness.transactional === true) {
    alone('A20: a result that cannot be committed is not reported as one', async (contract) => {
      const service = await contract.service();
      await whenFrozen(
        contract,
        service,
        () => 'the result',
        (work) => expect(work).rejects.toThrow(/confirm the commit/u),
      );
    });
  } else {
    alone('A20: a result survives a release that fails', async (contract) => {
      const service = await contract.service();
      await whenFrozen(
        contract,
        service,
        () => 'the result',
        (work) => expect(work).resolves.toBe('the result'),
      );
    });
  }

  it('A24: taking a key again by mistake is named, with the outer locks, instead of waiting for oneself', async (contract) => {
    const service = await contract.service();
    const [outer, inner] = [contract.key(), contract.key()];
    const nested = service.withLock(outer, () =>
      service.withLock(inner, () => service.withLock(outer, () => 'never', { waitMs: Infinity })),
    );
    const error = await failureOf(nested);
    expect(error).toBeInstanceOf(LockDeadlockError);
    expect(error).toMatchObject({ held: [inner, outer], wanted: outer });
  });

  it('A24: another call tree of the same process waits, and its time-out names this process', async (contract) => {
    const service = await contract.service({ label: 'this-process' });
    const key = contract.key();
    const [entrance, exit] = [new Gate(), new Gate()];
    const held = service.withLock(key, () => (entrance.open(), exit.opened), { ttlMs: LONG_TTL_MS });
    await entrance.opened;
    await expect(service.acquire(key, { waitMs: 20 })).rejects.toMatchObject({ holder: { label: 'this-process' } });
    exit.open();
    await held;
  });

  it('sends waiters away when the service closes, with the reason', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    const waiting = handled(theirs.acquire(key, { waitMs: Infinity }));
    theirs.stop();
    await expect(failureOf(waiting)).resolves.toBeInstanceOf(LockShutdownError);
    await lock.release();
  });
}
