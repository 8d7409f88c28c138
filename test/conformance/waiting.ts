import { getEventListeners } from 'node:events';
import { hostname } from 'node:os';
import { type LockBackend, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { eventually, fencingToken, LAST_HAND_OFF, type Lease, type Suite, timeLimitOf } from '../support/index.js';
import { failureOf, Gate, handled, LONG_TTL_MS, PATIENT_MS, SLACK_MS } from './contract.js';

export function waiting({ harness, it, alone }: Suite): void {
  alone('has the key soon after its release elsewhere', async (contract) => {
    const [ours, theirs] = [await contract.backend(), await contract.backend()];
    const key = contract.key();
    const lease = await contract.win(ours, key, { ttlMs: LONG_TTL_MS });
    const blocked = new Blocked();
    const { onBlocked } = blocked;
    const inLine = contract.win(theirs, key, { onBlocked, waitMs: 10_000, ttlMs: LONG_TTL_MS });
    await blocked.once(harness.namesHolder);
    const releasedAt = performance.now();
    await lease.release();
    const next = await inLine;
    expect(performance.now() - releasedAt).toTakeLessThan(harness.wakesWithinMs);
    await next.release();
  });

  it('leaves room between the tokens of those who wait, for the hand-offs of each', async (contract) => {
    const key = contract.key();
    const lease = await contract.win(await contract.backend(), key, { ttlMs: LONG_TTL_MS });
    const leases: Lease[] = [];
    const visit = async (backend: LockBackend, { onBlocked }: Blocked) => {
      const next = await contract.win(backend, key, { onBlocked, waitMs: 10_000, ttlMs: LONG_TTL_MS });
      leases.push(next);
      await next.release();
    };
    const blocked = [new Blocked(), new Blocked()];
    // In lists, because what is awaited here is that the visits begin.
    const visits = await Promise.all(blocked.map(async (one) => [visit(await contract.backend(), one)]));
    await Promise.race([Promise.all(blocked.map((one) => one.once(harness.namesHolder))), Promise.all(visits.flat())]);
    await lease.release();
    await Promise.all(visits.flat());
    const [first = 0n, second = 0n] = leases.map((next) => next.fencingToken);
    expect(fencingToken(second)).toBeGreaterThan(fencingToken(first, LAST_HAND_OFF));
  });

  alone('gives up in time, names the holder, and leaves nothing', async (contract) => {
    const holder = await contract.service({ label: 'the-holder' });
    const other = await contract.service();
    const key = contract.key();
    const lock = await holder.acquire(key, { ttlMs: LONG_TTL_MS });
    const waitMs = timeLimitOf(500);
    const since = performance.now();
    const error = await failureOf(other.acquire(key, { waitMs }));
    const elapsed = performance.now() - since;
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(elapsed).toBeGreaterThanOrEqual(waitMs - 1);
    expect(elapsed).toTakeLessThan(waitMs + SLACK_MS);
    if (harness.namesHolder) {
      expect(error).toMatchObject({ holder: { label: 'the-holder', pid: process.pid, host: hostname() } });
      const { holder: told } = error as LockTimeoutError;
      expect(Math.abs(Date.now() - Number(told?.since))).toBeLessThan(10_000);
      expect(String(error)).toContain('the-holder');
    }
    await lock.release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  alone('tries once and never waits with waitMs 0', async (contract) => {
    const [holder, other] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await holder.acquire(key, { ttlMs: LONG_TTL_MS });
    const since = performance.now();
    await expect(other.tryAcquire(key)).resolves.toBeNull();
    await expect(other.acquire(key, { waitMs: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
    expect(performance.now() - since).toTakeLessThan(SLACK_MS);
    await lock.release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  it('gives up with the reason of the signal, leaving no listener, no trace, and no ghost that gets the key', async (contract) => {
    const [ours, theirs] = [await contract.backend(), await contract.backend()];
    const key = contract.key();
    const lease = await contract.win(ours, key, { ttlMs: LONG_TTL_MS });
    const abort = new AbortController();
    const reason = new Error('no longer wanted');
    const blocked = new Blocked();
    const { signal } = abort;
    const { onBlocked } = blocked;
    const inLine = handled(contract.contend(theirs, key, { onBlocked, waitMs: 10_000, signal }));
    await blocked.once(harness.namesHolder);
    abort.abort(reason);
    await expect(failureOf(inLine)).resolves.toBe(reason);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    await lease.release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    // A server that already had it in its line may offer it the key, which is declined at once.
    await (await contract.win(ours, key, { waitMs: Math.max(2_000, SLACK_MS) })).release();
  });

  it('asks nothing of the server when the caller had already given up', async (contract) => {
    const backend = await contract.backend();
    const key = contract.key();
    const reason = new Error('never wanted');
    const signal = AbortSignal.abort(reason);
    await expect(failureOf(contract.contend(backend, key, { signal, waitMs: 1_000 }))).resolves.toBe(reason);
    await expect(harness.leftovers(key)).resolves.toEqual([]);
  });

  if (harness.order === 'fifo') {
    it('serves other processes in the order in which they came', async (contract) => {
      const key = contract.key();
      const lease = await contract.win(await contract.backend(), key, { ttlMs: LONG_TTL_MS });
      const served: number[] = [];
      const waits: Promise<void>[] = [];
      for (let place = 0; place < 6; place += 1) {
        const backend = await contract.backend();
        const blocked = new Blocked();
        const { onBlocked } = blocked;
        const wait = contract.win(backend, key, { onBlocked, waitMs: 10_000, ttlMs: LONG_TTL_MS });
        waits.push(
          wait.then((next) => {
            served.push(place);
            return next.release();
          }),
        );
        // When the holder's session has ended, the waiter has the key at once, and is never told to wait.
        const tooEarly = handled(wait.then(() => Promise.reject(new Error('had the key before it was released'))));
        await Promise.race([blocked.once(harness.namesHolder), tooEarly]);
      }
      await lease.release();
      await Promise.all(waits);
      expect(served).toEqual([0, 1, 2, 3, 4, 5]);
    });
  }

  it('starves nobody: one caller elsewhere gets in among many who keep coming', async (contract) => {
    const [crowd, single] = [await contract.service({ maxHandOffMs: 50 }), await contract.service()];
    const key = contract.key();
    const options = { waitMs: PATIENT_MS, ttlMs: 5_000 };
    const over = new AbortController();
    const rush = Array.from({ length: 10 }, async () => {
      while (!over.signal.aborted) await crowd.withLock(key, () => new Promise(setImmediate), options);
    });
    try {
      for (let visit = 0; visit < 3; visit += 1) {
        await (await single.acquire(key, options)).release();
      }
    } finally {
      over.abort();
      await Promise.all(rush);
    }
  });
}

/** Tells when a contender has learnt that it must wait, which is when it is in the server's queue. */
class Blocked {
  readonly #told = new Gate();
  readonly onBlocked = (): void => this.#told.open();

  /** Where the backend names no holder there is nothing to wait for, and no queue to be in. */
  async once(namesHolder: boolean): Promise<void> {
    if (namesHolder) await this.#told.opened;
  }
}
