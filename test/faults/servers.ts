import { aborted, type BackendHarness, eventually, failureOf, throughout, timeLimitOf } from '../support/index.js';
import { FakeWallClock } from './fake-wall-clock.js';
import { startHolder } from './start-holder.js';
import type { Declare } from '../conformance/suite.js';
import type { FaultTheme } from './fault-theme.js';

const LONG_TTL_MS = 20_000;

type Restart = NonNullable<BackendHarness['restart']>;

export const servers: FaultTheme = {
  title: 'what servers and clocks do',
  declare({ harness, revoking, alone, thorough }) {
    thorough.it('A13: wall clock of the holder jumps an hour forwards and back: nothing happens', async (contract) => {
      // Long enough for a process that stands still for a second on a busy machine: the clock alone is to be seen here.
      const ttlMs = Math.max(2_000, contract.processTtlMs);
      const [other, key] = [await contract.service(), contract.key()];
      await using clock = await FakeWallClock.start();
      await using holder = await startHolder(contract, clock.env);
      await holder.acquire(key, { ttlMs });
      for (const hours of [1, -1]) {
        await clock.set(hours);
        const wallClock = () => holder.child.call('wallClock');
        await eventually(async () => Math.abs((await wallClock()) - Date.now() - hours * 3_600_000) < 60_000);
        await throughout(ttlMs * 1.1, async () => expect(await other.tryAcquire(key)).toBeNull());
        expect(await holder.child.call('belief', key)).toMatchObject({ isHeld: true, aborted: false });
      }
      await expect(holder.child.call('events')).resolves.not.toContain('lost');
      await holder.child.call('release', key);
      await (await other.acquire(key)).release();
    });

    revoking(
      'A14: server drops the key early, as after a jump of its clock: told with the next renewal, tokens grow',
      async (contract) => {
        const [ours, theirs, key] = [await contract.service(), await contract.service(), contract.key()];
        // A renewal has to tell, before a busy machine takes the lock for expired.
        const ttlMs = Math.max(6_000, contract.harness.shortTtlMs);
        const lock = await ours.acquire(key, { ttlMs });
        await contract.harness.revoke(key);
        const next = await theirs.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(5_000) });
        await aborted(lock.signal);
        expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
        expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
        expect(next.isHeld).toBe(true);
        await next.release();
      },
    );

    alone(
      'A23: server frozen, killed and restarted harms no process: nothing unhandled, and it ends by itself',
      async (contract) => {
        const { freeze, restart } = contract.harness;
        await using holder = await startHolder(contract);
        const [held, wanted, ttlMs] = [contract.key(), contract.key(), contract.processTtlMs];
        const blocking = await (await contract.service()).acquire(wanted, { ttlMs: LONG_TTL_MS });
        await holder.acquire(held, { ttlMs });
        const waiting = holder.acquire(wanted, { ttlMs, waitMs: 30_000 }).catch((error: unknown) => error);
        const thaw = await freeze?.();
        await holder.child.call('loss', held);
        await thaw?.();
        await restart?.({ empty: true });
        await blocking.release();
        await holder.child.call('release', held);
        await waiting;
        await holder.close();
        await expect(holder.exit()).resolves.toEqual({ code: 0, signal: null });
        expect(holder.child.stderr).toBe('');
      },
    );

    const { restart } = harness;
    if (restart) losesAllData(alone, restart);
    if (restart && harness.boundToConnection !== true) keepsAllData(thorough.alone, restart);
  },
};

function losesAllData(alone: Declare, restart: Restart): void {
  alone(
    'A26: server killed and restarted empty: the holder is told right after the reconnect, long before its TTL ends',
    async (contract) => {
      const [ours, theirs, key] = [await contract.service(), await contract.service(), contract.key()];
      const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
      await restart({ empty: true });
      const backAt = performance.now();
      const next = await eventually(() => theirs.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 0 }));
      expect((await aborted(lock.signal)) - backAt).toTakeLessThan(Math.max(4_000, timeLimitOf(2_000)));
      expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
      await lock.release();
      expect(next.isHeld).toBe(true);
      await next.release();
    },
  );
}

function keepsAllData(alone: Declare, restart: Restart): void {
  alone('A27: server killed and restarted with all its data: nothing is lost', async (contract) => {
    const [ours, theirs, key] = [await contract.service(), await contract.service(), contract.key()];
    const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    const work = ours.withLock(contract.key(), () => restart({ empty: false }), {
      ttlMs: LONG_TTL_MS,
    });
    await work;
    await eventually(async () => expect(await theirs.tryAcquire(key)).toBeNull());
    await eventually(() => lock.state === 'held');
    await expect(failureOf(theirs.acquire(key, { waitMs: timeLimitOf(1_000) }))).resolves.toMatchObject({
      code: 'LOCK_TIMEOUT',
    });
    await lock.release();
    await (await theirs.acquire(key, { waitMs: timeLimitOf(2_000) })).release();
  });
}
