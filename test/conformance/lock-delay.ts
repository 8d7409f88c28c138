import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { aborted, failureOf, Holder, processTtlOf, SLACK_MS, type Suite } from '../support/index.js';

/** Long enough to be told from everything else, and a part of a session's time where that is the TTL. */
function delayOf(shortTtlMs: number): number {
  return shortTtlMs < 400 ? 400 : shortTtlMs / 2;
}

export function lockDelay({ harness, it, timed }: Suite): void {
  const { shortTtlMs, wakesWithinMs, expiresLateMs = 0 } = harness;
  const ttlMs = processTtlOf(harness);
  const lockDelayMs = delayOf(shortTtlMs);
  const atMostMs = ttlMs + lockDelayMs + expiresLateMs + wakesWithinMs + SLACK_MS;

  if (harness.transactional === true || harness.boundToConnection === true) {
    it('is refused: the lock ends with its connection, and so at once when the holder crashes', async (contract) => {
      const service = await contract.service();
      const error = await failureOf(service.acquire(contract.key(), { lockDelayMs }));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error).toMatchObject({ option: 'lockDelayMs' });
    });
    return;
  }

  timed.it('keeps the key closed for so much longer than its holder trusted it', async (contract) => {
    const [holder, other] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await holder.acquire(key, { ttlMs, lockDelayMs, watchdog: false });
    let believedAt = performance.now();
    const looking = setInterval(() => {
      const at = performance.now();
      if (lock.isHeld) believedAt = at;
    }, 10);
    const next = await other.acquire(key, { waitMs: atMostMs * 3 });
    clearInterval(looking);
    expect(performance.now() - believedAt).toBeGreaterThan(lockDelayMs * 0.9);
    await aborted(lock.signal);
    expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await next.release();
  });

  it('is no matter after a release', async (contract) => {
    const [holder, other] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await holder.acquire(key, { ttlMs: 20_000, lockDelayMs });
    await lock.release();
    const next = await other.tryAcquire(key);
    expect(next).not.toBeNull();
    await next?.release();
  });

  if (harness.connection) {
    const { connection } = harness;
    timed.it(
      'keeps the key of a process killed by SIGKILL closed for so long, and no longer than that and its TTL',
      async (contract) => {
        const other = await contract.service();
        const key = contract.key();
        await using holder = await Holder.start(connection());
        await holder.acquire(key, { ttlMs, lockDelayMs });
        const endsAt = performance.now();
        await holder.kill();
        const killedAt = performance.now();
        const next = await other.acquire(key, { waitMs: atMostMs * 3 });
        const nextAt = performance.now();
        // A busy machine tells of the end late, when a part of the delay is over.
        expect(nextAt - endsAt).toBeGreaterThan(lockDelayMs);
        expect(nextAt - killedAt).toTakeLessThan(atMostMs);
        await next.release();
      },
    );
  }
}
