import { LockLostError } from 'nestjs-distributed-lock/core';
import { aborted, eventually, failureOf, Holder, SLACK_MS, type Suite, throughout } from '../support/index.js';

export function holding({ harness, timed }: Suite): void {
  const { expiresLateMs = 0 } = harness;

  timed.it('keeps the key for three TTLs and longer, without a doubt', async (contract) => {
    const [holder, other] = [await contract.service(), await contract.backend()];
    const key = contract.key();
    // Long enough for a process that gets no processor for a while; others wait meanwhile, too.
    const ttlMs = Math.max(2_000, harness.shortTtlMs);
    const lock = await holder.acquire(key, { ttlMs });
    await throughout(ttlMs * 3.2, async () => {
      expect(lock.isHeld).toBe(true);
      await expect(contract.contend(other, key)).resolves.toBeNull();
    });
    expect(lock.signal.aborted).toBe(false);
    await lock.release();
    await (await contract.win(other, key)).release();
  });

  // Two timers of one process: which of them is late must not depend on what else it does.
  timed.alone('ends after one TTL without a watchdog, for the holder before anybody else', async (contract) => {
    const [holder, other] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const since = performance.now();
    const lock = await holder.acquire(key, { watchdog: false });
    const lostAt = aborted(lock.signal);
    const next = await other.acquire(key, { waitMs: harness.shortTtlMs * 4 + 5_000 });
    const nextAt = performance.now();
    expect(lock.isHeld).toBe(false);
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    // A server that ends the connection of a silent holder may be heard a moment before our own timer.
    expect(lock.signal.reason).toMatchObject({ reason: expect.stringMatching(/^(expired|revoked)$/u) });
    // A store in this process answers a timer at once, and after a stall that one may come before the holder's own.
    if (harness.server) expect(await lostAt).toBeLessThanOrEqual(nextAt);
    else await lostAt;
    expect(nextAt - since).toBeGreaterThan(harness.shortTtlMs * 0.9);
    await next.release();
  });

  timed.it('is lost after maxHoldMs, and free for others at once', async (contract) => {
    const [holder, other] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const ttlMs = 20_000;
    const hung = holder.withLock(key, ({ signal }) => aborted(signal), { maxHoldMs: 100, ttlMs });
    const error = await failureOf(hung);
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ reason: 'max-hold' });
    const next = await other.acquire(key, { waitMs: harness.wakesWithinMs + SLACK_MS });
    await next.release();
  });

  timed.it(
    'frees the key of a holder that vanished within its TTL, and not before it had stopped trusting it',
    async (contract) => {
      const [dead, other] = [await contract.backend(), await contract.backend()];
      const key = contract.key();
      const lease = await contract.win(dead, key);
      const next = await contract.win(other, key, { waitMs: lease.times.serverTtlMs * 3 + 5_000 });
      const waited = performance.now() - lease.times.sentAt;
      expect(waited).toBeGreaterThan(lease.times.serverTtlMs * 0.99 - 2);
      expect(waited).toTakeLessThan(lease.times.serverTtlMs + expiresLateMs + harness.wakesWithinMs + SLACK_MS);
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      await next.release();
      await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    },
  );

  if (harness.connection) {
    const { connection } = harness;
    timed.it('frees the key of a process killed by SIGKILL within its TTL', async (contract) => {
      const other = await contract.service();
      const key = contract.key();
      // Long enough for a process that gets no processor for a while.
      const ttlMs = Math.max(harness.shortTtlMs, 2_000);
      await using holder = await Holder.start(connection());
      const { fencingToken } = await holder.acquire(key, { ttlMs });
      await throughout(ttlMs * 1.5, async () => expect(await other.tryAcquire(key)).toBeNull());
      await holder.kill();
      const killedAt = performance.now();
      const next = await other.acquire(key, { waitMs: ttlMs * 3 + 5_000 });
      expect(performance.now() - killedAt).toTakeLessThan(ttlMs + expiresLateMs + harness.wakesWithinMs + SLACK_MS);
      expect(next.fencingToken).toBeGreaterThan(fencingToken);
      await next.release();
    });
  }
}
