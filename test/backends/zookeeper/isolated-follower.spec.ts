import { expect, it } from '@jest/globals';
import { LockService } from 'nestjs-distributed-lock/core';
import { zookeeper } from 'nestjs-distributed-lock/zookeeper';
import { aborted } from '../../conformance/contract.js';
import { ZookeeperEnsemble } from '../../servers/zookeeper-ensemble.js';
import { wantedOf } from '../describe-backend.js';

const SESSION_MS = 1_200;
const ROUNDS = 3;

for (const name of wantedOf(['zookeeper-ensemble'])) {
  it(`${name}: Z7: a follower that is cut off from its leader answers reads for long; its holder is told before the leader lets the next one in`, async () => {
    const ensemble = await ZookeeperEnsemble.start({ proxied: true });
    const [follower] = await ensemble.followers();
    const leader = await ensemble.leader();
    if (!follower) throw new Error('an ensemble of three has followers');
    try {
      for (let round = 0; round < ROUNDS; round += 1) {
        const [alone, other] = [follower, leader].map(
          ({ address }) => new LockService(zookeeper({ connectString: address, sessionTimeoutMs: SESSION_MS })),
        );
        if (!alone || !other) throw new Error('two services were made');
        const key = `key-${round}`;
        const lock = await alone.acquire(key);
        const told = aborted(lock.signal);
        const next = other.acquire(key, { waitMs: 20_000 });
        // Anywhere between two life signs.
        await new Promise((resolve) => setTimeout(resolve, SESSION_MS / 2 + (round * SESSION_MS) / 12));
        ensemble.isolate(follower);
        const present = await next;
        const grantedAt = performance.now();
        expect(lock.isHeld).toBe(false);
        expect(await told).toBeLessThan(grantedAt);
        expect(present.fencingToken).toBeGreaterThan(lock.fencingToken);
        // It still thinks that it follows, and would answer what it is asked.
        await expect(follower.ask('srvr')).resolves.toContain('Mode: follower');
        await present.release();
        ensemble.heal();
        await Promise.all([alone.close(), other.close()]);
      }
    } finally {
      await ensemble.stop();
    }
  });
}
