import { atLeastMs, eventually, RedisServer, SLACK_MS, throughout, timeLimitOf } from '../support/index.js';
import { FencedResource } from '../support/fenced-resource.js';
import { startHolder } from './start-holder.js';
import type { FaultTheme } from './fault-theme.js';

const LONG_TTL_MS = 20_000;
/** Time for a busy machine to renew after half of it. */
const BLOCKED_TTL_MS = Math.ceil(atLeastMs(4_000) / 1_000) * 1_000;

export const processes: FaultTheme = {
  title: 'what processes do',
  sessionTtlMs: BLOCKED_TTL_MS,
  declare({ it, alone, thorough }) {
    it('A1: holder killed: the next one has the key within the TTL, with a higher token, and nothing stays', async (contract) => {
      const [other, key, ttlMs] = [await contract.service(), contract.key(), contract.processTtlMs];
      await using holder = await startHolder(contract);
      const { fencingToken } = await holder.acquire(key, { ttlMs });
      const next = other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
      await holder.kill();
      const killedAt = performance.now();
      const lock = await next;
      const { expiresLateMs = 0, wakesWithinMs } = contract.harness;
      expect(performance.now() - killedAt).toTakeLessThan(ttlMs + expiresLateMs + wakesWithinMs + SLACK_MS);
      expect(lock.fencingToken).toBeGreaterThan(fencingToken);
      await lock.release();
      await eventually(async () => expect(await contract.harness.leftovers(key)).toEqual([]));
    });

    it('A1: waiter killed: the key passes it by', async (contract) => {
      const [ours, other, key] = [await contract.service(), await contract.service(), contract.key()];
      const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
      await using waiter = await startHolder(contract);
      const waiting = waiter.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) }).catch(() => 'killed');
      const next = other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
      // Its request is on its way; whether it arrives before the end must not matter.
      await waiter.kill();
      await lock.release();
      const releasedAt = performance.now();
      await (await next).release();
      // Its place in line may be handed the key first, for a second.
      expect(performance.now() - releasedAt).toTakeLessThan(5_000 + SLACK_MS);
      await expect(waiting).resolves.toBe('killed');
      await eventually(async () => expect(await contract.harness.leftovers(key)).toEqual([]));
    });

    alone(
      'A2: holder stopped for longer than its TTL: lost in its first step, told in its first turn, its write refused',
      async (contract) => {
        const [other, key, ttlMs] = [await contract.service(), contract.key(), contract.processTtlMs];
        await using resource = await startResource();
        await using holder = await startHolder(contract);
        await holder.acquire(key, { ttlMs });
        const { belief } = await holder.freezeWhile(key, async () => {
          const next = await other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
          await resource.write(key, next.fencingToken);
          await next.release();
        });
        expect(belief).toMatchObject({ isHeld: false, state: 'lost', throws: true, aborted: true });
        const loss = await holder.child.call('loss', key);
        expect(Number((loss?.at ?? 0n) - belief.at) / 1e6).toTakeLessThan(SLACK_MS);
        await expect(holder.child.call('write', { key, resource: resource.url })).resolves.toBe(false);
        await holder.close();
        await expect(holder.exit()).resolves.toEqual({ code: 0, signal: null });
      },
    );

    it('A3: event loop blocked for longer than the TTL: the same', async (contract) => {
      const [other, key, ttlMs] = [await contract.service(), contract.key(), contract.processTtlMs];
      await using resource = await startResource();
      await using holder = await startHolder(contract);
      const { fencingToken } = await holder.acquire(key, { ttlMs });
      const belief = holder.child.call('block', { key, ms: ttlMs * 1.5 });
      const next = await other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
      await resource.write(key, next.fencingToken);
      expect(await belief).toMatchObject({ isHeld: false, state: 'lost', throws: true, aborted: true });
      await expect(holder.child.call('write', { key, resource: resource.url })).resolves.toBe(false);
      // A renewal that was due meanwhile goes out late, and must not bring the lock back.
      await throughout(ttlMs * 0.4, () => expect(next.isHeld).toBe(true));
      expect(await holder.child.call('belief', key)).toMatchObject({ isHeld: false });
      expect(next.fencingToken).toBeGreaterThan(fencingToken);
      await next.release();
    });

    thorough.alone(
      'A4: event loop blocked for less than the TTL, across a renewal: no loss, no alarm',
      async (contract) => {
        const [other, key] = [await contract.service(), contract.key()];
        const ttlMs = Math.max(BLOCKED_TTL_MS, contract.processTtlMs);
        await using holder = await startHolder(contract);
        // From the turn of the acquisition on, past the renewal at a third of the TTL.
        const belief = await holder.child.call('acquireAndBlock', { key, options: { ttlMs }, ms: ttlMs / 2 });
        expect(belief).toMatchObject({ isHeld: true, throws: false, aborted: false });
        await throughout(ttlMs * 0.7, async () => expect(await other.tryAcquire(key)).toBeNull());
        await expect(holder.child.call('events')).resolves.not.toContain('lost');
      },
    );

    it('A22: process ends without any hook: as if it had been killed', async (contract) => {
      const [other, key, ttlMs] = [await contract.service(), contract.key(), contract.processTtlMs];
      await using holder = await startHolder(contract);
      await holder.acquire(key, { ttlMs });
      const next = other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
      holder.child.call('die').catch(() => undefined);
      await expect(holder.child.exited).resolves.toEqual({ code: 7, signal: null });
      await (await next).release();
    });
  },
};

/** The resource that the lock protects, on a server that no fault touches. */
async function startResource() {
  const server = await RedisServer.start();
  const resource = new FencedResource(server.url);
  return {
    url: server.url,
    write: async (key: string, token: bigint) => {
      await expect(resource.write({ key, token, owner: 'next', proc: 'test' })).resolves.toBe(true);
    },
    [Symbol.asyncDispose]: async () => {
      resource[Symbol.dispose]();
      await server.stop();
    },
  };
}
