import { LockService } from 'nestjs-distributed-lock/core';
import { zookeeper } from 'nestjs-distributed-lock/zookeeper';
import { aborted, atLeastMs, FaultProxy, timeLimitOf, describeWanted } from '../../support/index.js';
import { ZookeeperEnsemble } from '../../servers/zookeeper-ensemble.js';
import type { ZookeeperServer } from '../../servers/zookeeper-server.js';
import '../../support/slow-machine.js';

/** `ORDER_ROUNDS=100` for more of it. */
const ROUNDS = Math.ceil(Number(process.env.ORDER_ROUNDS ?? 20) / 7);
const TICK_MS = Math.ceil(atLeastMs(1_200) / 6);
/** The shortest for which the arithmetic of `session-times.ts` is exact. */
const SESSION_MS = 6 * TICK_MS;
const SYNC = 9;

describeWanted(['zookeeper-ensemble'], '%s:', () => {
  it('Z7: a follower that is cut off from its leader answers reads for long; its holder is told before the leader lets the next one in', async () => {
    const ensemble = await ZookeeperEnsemble.start({ proxied: true, settings: { tickTime: TICK_MS } });
    const [follower] = await ensemble.followers();
    if (!follower) throw new Error('an ensemble of three has followers');
    try {
      const leadsMs: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        leadsMs.push(await oneRound(ensemble, follower, round));
        ensemble.heal();
        // A follower that was alone for too long joins the ensemble anew, and serves nobody meanwhile.
        await ensemble.complete();
      }
      expect(leadsMs.filter((lead) => lead < 0)).toEqual([]);
    } finally {
      await ensemble.stop();
    }
  });
});

/** How long the holder knew of its loss when the next one got the key. */
async function oneRound(ensemble: ZookeeperEnsemble, follower: ZookeeperServer, round: number): Promise<number> {
  const proxy = await FaultProxy.start(follower);
  const { address } = await ensemble.leader();
  const [alone, other] = [`127.0.0.1:${proxy.port}`, address].map(
    (connectString) => new LockService(zookeeper({ connectString, sessionTtlMs: SESSION_MS })),
  );
  if (!alone || !other) throw new Error('two services were made');
  try {
    const key = `key-${round}`;
    const lock = await alone.acquire(key);
    const told = aborted(lock.signal);
    const next = other.acquire(key, { waitMs: timeLimitOf(20_000) });
    // Right after a life sign: the leader itself has not heard of it yet, only the follower.
    await lifeSigns(proxy, 2 + (round % 3));
    await follower.ask('ruok');
    ensemble.isolate(follower);
    const present = await next;
    const grantedAt = performance.now();
    expect(lock.isHeld).toBe(false);
    expect(present.fencingToken).toBeGreaterThan(lock.fencingToken);
    // The follower still believes that it follows a leader, and answers requests.
    await expect(follower.ask('srvr')).resolves.toContain('Mode: follower');
    await present.release();
    return grantedAt - (await told);
  } finally {
    await Promise.all([alone.close(), other.close()]);
    await proxy.close();
  }
}

/** Resolves when so many have been sent. */
function lifeSigns(proxy: FaultProxy, count: number): Promise<void> {
  let left = count;
  return new Promise((resolve) => {
    const stop = proxy.onRequest((chunk) => {
      if (chunk.length < 12 || chunk.readInt32BE(8) !== SYNC) return;
      left -= 1;
      if (left > 0) return;
      stop();
      resolve();
    });
  });
}
