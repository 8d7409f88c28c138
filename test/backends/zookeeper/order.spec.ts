import { expect, it } from '@jest/globals';
import { aborted, type Contract } from '../../conformance/contract.js';
import { describeOnBackend } from '../../conformance/describe-lock-backend.js';
import { ProxiedBackend } from '../../faults/proxied-backend.js';
import { zookeeperHarness } from '../../support/harness-zookeeper.js';
import { wantedOf } from '../describe-backend.js';

/** `ORDER_ROUNDS=100` for the whole of it. */
const ROUNDS = Number(process.env.ORDER_ROUNDS ?? 20);
/** Rounds at a time, each with a key of its own. */
const LANES = 10;

const HARNESSES = {
  zookeeper: () => zookeeperHarness('sequential', 'single'),
  'zookeeper-ensemble': () => zookeeperHarness('sequential', 'ensemble'),
};

for (const name of wantedOf(['zookeeper', 'zookeeper-ensemble'])) {
  describeOnBackend(`the order test, ${name}`, HARNESSES[name](), (contract) => {
    const property = `a holder that is cut off is told before the next one has the key, ${ROUNDS} of ${ROUNDS} times`;
    it(
      property,
      async () => {
        const leadsMs: number[] = [];
        const lane = async (first: number): Promise<void> => {
          for (let round = first; round < ROUNDS; round += LANES) leadsMs.push(await oneRound(contract));
        };
        await Promise.all(Array.from({ length: LANES }, (_, first) => lane(first)));
        expect(leadsMs).toHaveLength(ROUNDS);
        expect(leadsMs.filter((lead) => lead < 0)).toEqual([]);
      },
      ROUNDS * 1_000 + 30_000,
    );
  });
}

/** How long the holder knew of its loss when the next one got the key. */
async function oneRound(contract: Contract): Promise<number> {
  await using world = await ProxiedBackend.start(contract);
  const [alone, other] = [await world.proxied(), await contract.service()];
  const key = contract.key();
  const lock = await alone.acquire(key);
  let toldAt = Infinity;
  void aborted(lock.signal).then((at) => (toldAt = at));
  const next = other.acquire(key, { waitMs: 20_000 });
  world.proxy.pause();
  const present = await next;
  const grantedAt = performance.now();
  expect(lock.isHeld).toBe(false);
  expect(present.fencingToken).toBeGreaterThan(lock.fencingToken);
  await present.release();
  return grantedAt - toldAt;
}
