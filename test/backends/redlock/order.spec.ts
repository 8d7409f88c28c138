import { LockService } from 'nestjs-distributed-lock/core';
import { redlock } from 'nestjs-distributed-lock/redlock';
import { leadOf, toldFirst } from '../../faults/cut-off.js';
import { describeWanted, FaultProxy } from '../../support/index.js';
import { RedlockWorld } from './redlock-world.js';

/** `ORDER_ROUNDS=200` for the whole of it. */
const ROUNDS = Number(process.env.ORDER_ROUNDS ?? 20);
/** Rounds at a time, each with a key of its own. */
const LANES = 4;

describeWanted(['redlock'], 'the order test of %s', () => {
  const world = RedlockWorld.shared();

  it.each([5, 3])(
    `a holder that is cut off from %d of five is told before the next one has the key, ${ROUNDS} of ${ROUNDS} times`,
    (nodes) => toldFirst(ROUNDS, LANES, (round) => cutOff(nodes, `${nodes}-${round}`)),
    ROUNDS * 1_000 + 300_000,
  );

  async function cutOff(silent: number, key: string): Promise<number> {
    const proxies = await Promise.all(world.servers.map((server) => FaultProxy.start(server)));
    const alone = new LockService(redlock({ urls: proxies.map(({ port }) => `redis://127.0.0.1:${port}`) }));
    const other = new LockService(redlock({ urls: world.urls }));
    await other.withLock(`${key}-warm-up`, () => undefined);
    return leadOf(key, { alone, other, proxies, silent });
  }
});
