import { atLeastMs, type Contract, isQuickTier } from '../support/index.js';
import { leadAfter, toldFirst } from './cut-off.js';
import { ProxiedBackend } from './proxied-backend.js';
import type { FaultTheme } from './fault-theme.js';

/** `ORDER_ROUNDS=200` for the whole of it. */
const ROUNDS = Number(process.env.ORDER_ROUNDS ?? (isQuickTier ? 5 : 20));
/** Rounds at a time, each with a key of its own: more keep a busy machine from answering within a TTL. */
const LANES = 5;

/**
 * The safety property: a holder that is cut off alone knows that its lock is lost before anybody else has it. Nothing but
 * its own clock can tell it. For a holder that is frozen, see A2.
 */
export const order: FaultTheme = {
  title: 'the order test',
  declare({ alone }) {
    const property = `a holder that is cut off is told before the next one has the key, ${ROUNDS} of ${ROUNDS} times`;
    const rounds = (contract: Contract) => toldFirst(ROUNDS, LANES, () => oneRound(contract));
    alone(property, rounds, ROUNDS * 1_000 + 30_000);
  },
};

/** For ZooKeeper: ten sessions begin at once, and each of their requests is due within a quarter of the session. */
export const orderOfSlowSessions: FaultTheme = { ...order, sessionTtlMs: Math.ceil(atLeastMs(2_000) / 1_000) * 1_000 };

/** How long the holder knew of its loss when the next one got the key. */
async function oneRound(contract: Contract): Promise<number> {
  await using world = await ProxiedBackend.start(contract);
  const [alone, other] = [await world.proxied(), await contract.service()];
  const contention = { key: contract.key(), ttlMs: contract.processTtlMs, alone, other };
  return await leadAfter(() => world.proxy.pause(), contention);
}
