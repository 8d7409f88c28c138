import { inspect } from 'node:util';
import { type LockHandle, LockLostError } from 'nestjs-distributed-lock/core';
import { eventually, type Suite, timeLimitOf, whileFrozen } from '../support/index.js';
import { aborted, blockEventLoop, type Contract, failureOf, SLACK_MS, handled } from './contract.js';

export function loss({ harness, timed }: Suite): void {
  const { shortTtlMs } = harness;
  /** Long enough for a process that gets no processor before it revokes, or when the renewal is due. */
  const patientTtlMs = Math.max(6_000, shortTtlMs);

  timed.revoking(
    'of a key taken away on the server is told with the next renewal, and withLock rejects',
    async (contract) => {
      const service = await contract.service();
      const key = contract.key();
      let finished = false;
      const hold = async (lock: LockHandle): Promise<void> => {
        await harness.revoke(key);
        await aborted(lock.signal);
        expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
        expect(lock.isHeld).toBe(false);
        expect(lock.state).toBe('lost');
        expect(() => lock.throwIfLost()).toThrow(LockLostError);
        finished = true;
      };
      const work = service.withLock(key, hold, { ttlMs: patientTtlMs });
      await expect(failureOf(work)).resolves.toMatchObject({ code: 'LOCK_LOST', key });
      expect(finished).toBe(true);
    },
  );

  timed.revoking('never hides the error of the work', async (contract) => {
    const service = await contract.service();
    const key = contract.key();
    const own = new Error('out of stock');
    const hold = async (lock: LockHandle): Promise<void> => {
      await harness.revoke(key);
      await aborted(lock.signal);
      throw own;
    };
    const work = service.withLock(key, hold, { ttlMs: patientTtlMs });
    await expect(failureOf(work)).resolves.toBe(own);
  });

  timed.alone('makes a later release quiet and quick, and harmless to the next holder', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await ours.acquire(key, { ttlMs: patientTtlMs });
    await harness.revoke(key);
    const next = await theirs.acquire(key, { waitMs: timeLimitOf(5_000), ttlMs: 20_000 });
    await aborted(lock.signal);
    const since = performance.now();
    await lock.release();
    expect(performance.now() - since).toTakeLessThan(SLACK_MS);
    expect(next.isHeld).toBe(true);
    await expect(ours.tryAcquire(key)).resolves.toBeNull();
    await next.release();
  });

  timed.revoking('lets the next caller of the same process try', async (contract) => {
    const service = await contract.service();
    const key = contract.key();
    const lock = await service.acquire(key, { ttlMs: patientTtlMs });
    const waiting = handled(service.acquire(key, { waitMs: timeLimitOf(10_000) }));
    await harness.revoke(key);
    const next = await waiting;
    expect(lock.isHeld).toBe(false);
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await next.release();
  });

  timed.alone(
    'shows in the first synchronous step after the event loop was blocked for longer than the TTL',
    async (contract) => {
      const service = await contract.service();
      const lock = await service.acquire(contract.key());
      expect(lock.isHeld).toBe(true);
      blockEventLoop(shortTtlMs + 20);
      expect(lock.isHeld).toBe(false);
      expect(lock.state).toBe('lost');
      expect(() => lock.throwIfLost()).toThrow(LockLostError);
      expect(lock.signal.aborted).toBe(true);
      await lock.release();
    },
  );

  timed.alone('does not follow from an event loop that was blocked for less, across a renewal', async (contract) => {
    const service = await contract.service();
    const ttlMs = Math.max(2_000, shortTtlMs);
    const askedAt = performance.now();
    const lock = await service.acquire(contract.key(), { ttlMs });
    // Longer than the third between two renewals, and so that the one after it may be late.
    blockEventLoop(askedAt + ttlMs * 0.45 - performance.now());
    expect(lock.isHeld).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, ttlMs));
    expect(lock.isHeld).toBe(true);
    expect(lock.signal.aborted).toBe(false);
    await lock.release();
  });

  if (harness.freeze) {
    const { freeze } = harness;
    timed.alone(
      'is told on our own clock when the server falls silent: jeopardy first, before the TTL ends',
      async (contract) => {
        const service = await contract.service();
        const events = service.events();
        const ttlMs = Math.max(2_000, shortTtlMs);
        const lock = await service.acquire(contract.key(), { ttlMs });
        const toldAt = aborted(lock.signal);
        await whileFrozen(freeze, async () => {
          const frozenAt = performance.now();
          // That nobody else can have it before is what the order test shows.
          expect((await toldAt) - frozenAt).toTakeLessThan(ttlMs + SLACK_MS);
        });
        expect(lock.isHeld).toBe(false);
        expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
        await service.close();
        const told: unknown[] = [];
        for await (const event of events) if ('leftMs' in event) told.push(event);
        const { fencingToken } = lock;
        expect(told).toMatchObject([
          { type: 'jeopardy', fencingToken, leftMs: expect.any(Number) },
          { type: 'lost', fencingToken, leftMs: 0, reason: 'expired' },
        ]);
      },
    );

    timed.alone('is no loss when the server comes back in time: held, jeopardy, held', async (contract) => {
      const events: string[] = [];
      const observers = [
        { jeopardy: () => events.push('jeopardy'), safe: () => events.push('safe'), lost: () => events.push('lost') },
      ];
      const service = await contract.service({ observers });
      const ttlMs = Math.max(6_000, shortTtlMs * 5);
      const lock = await service.acquire(contract.key(), { ttlMs });
      await whileFrozen(freeze, async () => {
        await eventually(() => lock.state === 'jeopardy', { withinMs: ttlMs });
      });
      await eventually(() => lock.state === 'held');
      // More than one round of it when the connection is replaced after the first answer.
      expect(events.slice(0, 2)).toEqual(['jeopardy', 'safe']);
      expect(events).toEqual(events.map((_, i) => (i % 2 === 0 ? 'jeopardy' : 'safe')));
      await lock.release();
    });

    timed.alone(
      'of contact while waiting is a LockBackendError or a time-out, in time, and leaves nothing',
      async (contract) => {
        const service = await contract.service();
        const key = contract.key();
        await whileFrozen(freeze, async () => {
          const since = performance.now();
          const error = await failureOf(service.acquire(key, { waitMs: 300, ttlMs: 20_000 }));
          expect(error).toMatchObject({ code: 'LOCK_BACKEND', key });
          expect(performance.now() - since).toTakeLessThan(300 + SLACK_MS);
        });
        await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
      },
    );
  }

  if (harness.restart) {
    const { restart, boundToConnection = false } = harness;
    const fatal = boundToConnection ? [{ empty: true }, { empty: false }] : [{ empty: true }];
    const restarted = async (contract: Contract, how: { readonly empty: boolean }): Promise<void> => {
      const ours = await contract.service();
      const key = contract.key();
      const lock = await ours.acquire(key, { ttlMs: 30_000 });
      const toldAt = aborted(lock.signal);
      await restart(how);
      const backAt = performance.now();
      expect((await toldAt) - backAt).toTakeLessThan(Math.max(4_000, timeLimitOf(2_000)));
      expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
      await lock.release();
    };
    for (const how of fatal) {
      const name = `by a restart of the server, ${inspect(how)}, is told soon after, and the former release is harmless`;
      timed.alone(name, (contract) => restarted(contract, how));
    }
  }

  if (harness.restart && harness.boundToConnection !== true) {
    const { restart } = harness;
    timed.alone('does not follow from a restart that keeps all data', async (contract) => {
      const [ours, theirs] = [await contract.service(), await contract.service()];
      const key = contract.key();
      const lock = await ours.acquire(key, { ttlMs: 20_000 });
      await restart({ empty: false });
      await eventually(() => ours.tryAcquire(`${key}-other`).then((other) => other?.release()), { withinMs: 10_000 });
      await eventually(async () => expect(await theirs.tryAcquire(key)).toBeNull(), { withinMs: 10_000 });
      expect(lock.isHeld).toBe(true);
      await lock.release();
      await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    });
  }
}
