import { systemClock } from '../../core/index.js';

/**
 * The tokens that this process proposes: its clock in microseconds, set by the nodes' clocks whenever they refuse a
 * proposal. A wrong clock costs one round. Nodes trust none of it: they take no token that would break the order.
 */
export class TokenClock {
  #aheadUs = 0;

  now(): number {
    return Math.floor((performance.timeOrigin + systemClock.now()) * 1_000 + this.#aheadUs);
  }

  set(now: number): void {
    this.#aheadUs += now - this.now();
  }
}

/** The tokens that a node takes now: greater than `floor`, at most `ceiling`. Both may rise with its clock. */
export interface TokenWindow {
  readonly floor: number;
  readonly ceiling: number;
}

/** A token, and how long from now it may get a quorum. */
export interface Proposal {
  readonly token: number;
  readonly inMs: number;
}

/** The token that `quorum` nodes take soonest: `now`, or as little more as they remember. `undefined`: none. */
export function soonestToken(windows: readonly TokenWindow[], quorum: number, now: number): Proposal | undefined {
  const remembered = windows.map(({ floor }) => floor + 1).filter((token) => token > now);
  const candidates = [now, ...remembered.toSorted((a, b) => a - b)].map((token) => ({
    token,
    inMs: whenTaken(token, windows, quorum),
  }));
  const soonest = Math.min(...candidates.map(({ inMs }) => inMs));
  return candidates.find(({ inMs }) => inMs === soonest && inMs !== Infinity);
}

function whenTaken(token: number, windows: readonly TokenWindow[], quorum: number): number {
  const waits = windows
    .filter(({ floor }) => token > floor)
    .map(({ ceiling }) => Math.max(0, token - ceiling) / 1_000)
    .toSorted((a, b) => a - b);
  return waits[quorum - 1] ?? Infinity;
}
