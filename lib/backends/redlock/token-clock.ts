import { PROCESS_START_MS, systemClock } from '../../core/index.js';

/**
 * Clock by which this process proposes tokens. It is adjusted to the nodes' clocks after a refusal. The nodes do not
 * rely on it, because they refuse each token that is too small.
 */
export class TokenClock {
  #offsetUs = 0;

  nowUs(): number {
    return Math.floor((PROCESS_START_MS + systemClock.now()) * 1_000 + this.#offsetUs);
  }

  adjustTo(nowUs: number): void {
    this.#offsetUs += nowUs - this.nowUs();
  }
}

/** Range of the tokens that a node grants now: above `floor`, up to `ceiling`. Both rise with the node's clock. */
export interface TokenWindow {
  readonly floor: number;
  readonly ceiling: number;
}

/** A token, and the delay after which a quorum may grant it. */
export interface Proposal {
  readonly token: number;
  readonly delayMs: number;
}

/**
 * Returns the token that `quorum` nodes grant soonest: `nowUs`, or a token just above one of the floors. Returns
 * `undefined` when no token can get a quorum.
 */
export function findSoonestToken(windows: readonly TokenWindow[], quorum: number, nowUs: number): Proposal | undefined {
  const tokensAboveFloors = windows.map(({ floor }) => floor + 1).filter((token) => token > nowUs);
  const proposals = [nowUs, ...tokensAboveFloors.toSorted((a, b) => a - b)].map((token) => ({
    token,
    delayMs: msUntilQuorum(token, windows, quorum),
  }));
  const minDelayMs = Math.min(...proposals.map(({ delayMs }) => delayMs));
  return proposals.find(({ delayMs }) => delayMs === minDelayMs && delayMs !== Infinity);
}

function msUntilQuorum(token: number, windows: readonly TokenWindow[], quorum: number): number {
  const delaysOfNodesMs = windows
    .filter(({ floor }) => token > floor)
    .map(({ ceiling }) => Math.max(0, token - ceiling) / 1_000)
    .toSorted((a, b) => a - b);
  return delaysOfNodesMs[quorum - 1] ?? Infinity;
}
