import type { LockHandle } from 'nestjs-distributed-lock/core';
import { HAND_OFF_BITS } from '../../lib/core/options/hand-off-options.js';
import type { VirtualProcess, VirtualTime } from './virtual-time.js';

interface Believer {
  readonly handle: LockHandle;
  readonly name: string;
  readonly process: VirtualProcess;
  readonly signal: AbortSignal;
  /** Whether its call asked for re-entry. */
  readonly shares: boolean;
  believes: boolean;
}

/** The slowest clock may end a lock-delay so early, by the world's time. */
const KEPT_SHARE = 0.99;

/** Who believes to hold what, and whether that can be true. */
export class Believers {
  readonly #believers = new Map<string, Set<Believer>>();
  readonly #newest = new Map<string, bigint>();
  /** Until when a lost lease has to stay on the server. */
  readonly #delays = new Map<string, { readonly lease: bigint; readonly until: number }>();

  constructor(
    private readonly time: VirtualTime,
    private readonly violate: (what: string) => void,
  ) {}

  /** A handle that a caller has just got. */
  add(handle: LockHandle, name: string, process: VirtualProcess, { lockDelayMs = 0, reentrant: shares = false }): void {
    const { key, fencingToken, signal } = handle;
    const present = this.#believers.get(key) ?? new Set();
    this.#believers.set(key, present);
    const reentered = [...present].some((other) => other.handle.fencingToken === fencingToken);
    const newest = this.#newest.get(key) ?? 0n;
    if (handle.isHeld && !reentered && fencingToken <= newest) {
      this.violate(`${key}: token ${fencingToken} of ${name} comes after ${newest}`);
    }
    if (fencingToken > newest) this.#newest.set(key, fencingToken);
    for (const other of present) {
      if (handle.isHeld && other.handle.isHeld && !(shares && other.shares))
        this.violate(`${key}: ${name} is inside beside ${other.name}, and not both have asked for it`);
    }
    present.add({ handle, name, process, signal, shares, believes: handle.isHeld });
    const since = this.time.now;
    signal.addEventListener('abort', () => {
      // One who stood still learns of its loss later, and counts from the end of trust.
      if (lockDelayMs === 0 || process.frozenSince(since) > 0) return;
      const until = this.time.now + lockDelayMs * KEPT_SHARE;
      this.#delays.set(key, { lease: fencingToken >> HAND_OFF_BITS, until });
    });
  }

  /** A handle that its caller gives back. */
  remove(handle: LockHandle): void {
    const present = this.#believers.get(handle.key);
    for (const believer of present ?? []) if (believer.handle === handle) present?.delete(believer);
  }

  /** The server frees a lease that has not run out. */
  onFreed(key: string, lease: bigint): void {
    const delay = this.#delays.get(key);
    if (delay?.lease === lease && this.time.now < delay.until) this.violate(`${key}: freed within its lock-delay`);
  }

  /** At most one acquisition of a key is believed in. Belief that ends is told at once, and does not come back. */
  check(): void {
    for (const [key, present] of this.#believers) {
      const inside = new Map<bigint, string>();
      for (const believer of present) {
        const { handle, name, process, signal } = believer;
        const believes = handle.isHeld;
        if (believes && !believer.believes) this.violate(`${key}: ${name} believes again`);
        // A timer may be an instant late, by rounding.
        const untold = !believes && !believer.believes && !signal.aborted;
        if (untold && process.frozenUntil <= this.time.now) {
          this.violate(`${key}: ${name} is not told of the loss`);
        }
        believer.believes = believes;
        if (believes) inside.set(handle.fencingToken, name);
      }
      if (inside.size > 1) {
        const who = [...inside].map(([token, name]) => `${name} with ${token}`).join(' and ');
        this.violate(`${key}: believed by ${who}`);
      }
    }
  }
}
