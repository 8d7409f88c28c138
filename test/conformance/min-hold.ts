import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { failureOf, handled, Holder, processTtlOf, SLACK_MS, type Suite } from '../support/index.js';

export function minHold({ harness, it, timed }: Suite): void {
  const { wakesWithinMs, expiresLateMs = 0, shortTtlMs } = harness;
  const ttlMs = processTtlOf(harness);
  const minHoldMs = ttlMs + shortTtlMs;
  const atMostMs = minHoldMs + ttlMs + expiresLateMs + wakesWithinMs + SLACK_MS;

  if (harness.transactional === true || harness.boundToConnection === true) {
    it('is refused: the lock ends with its connection, and so at once when the holder crashes', async (contract) => {
      const service = await contract.service();
      const error = await failureOf(service.acquire(contract.key(), { minHoldMs }));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error).toMatchObject({ option: 'minHoldMs' });
    });
    return;
  }

  timed.it(
    'keeps the key closed after a release, tells who waits when that ends, and raises the token',
    async (contract) => {
      const [holder, other] = [await contract.service(), await contract.service()];
      const key = contract.key();
      const askedAt = performance.now();
      // The waiter has seen this TTL, and is woken long before it ends.
      const lock = await holder.acquire(key, { ttlMs: 60_000, minHoldMs });
      const waiting = handled(other.acquire(key, { waitMs: 30_000 }));
      await lock.release();
      await expect(holder.tryAcquire(key)).resolves.toBeNull();
      const next = await waiting;
      const closedMs = performance.now() - askedAt;
      expect(closedMs).toBeGreaterThanOrEqual(minHoldMs);
      expect(closedMs).toTakeLessThan(atMostMs);
      expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
      await next.release();
    },
  );

  if (!harness.connection) return;
  const { connection } = harness;
  timed.it(
    'keeps the key of a process killed by SIGKILL closed for so long, unless its session ends before',
    async (contract) => {
      const other = await contract.service();
      const key = contract.key();
      const { endsWith } = (await contract.backend()).store.traits ?? {};
      await using holder = await Holder.start(connection());
      const askedAt = performance.now();
      await holder.acquire(key, { ttlMs, minHoldMs });
      await holder.kill();
      const next = await other.acquire(key, { waitMs: atMostMs * 3 });
      const closedMs = performance.now() - askedAt;
      expect(closedMs).toBeGreaterThanOrEqual(endsWith === 'session' ? 0 : minHoldMs);
      expect(closedMs).toTakeLessThan(atMostMs);
      await next.release();
    },
  );
}
