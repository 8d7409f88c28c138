import type { LockHandle } from 'nestjs-distributed-lock/core';
import { HAND_OFF_BITS } from '../../lib/core/options/hand-off-options.js';
import type { VirtualTime } from './virtual-time.js';

/** The fastest clock may end a shortest hold so early, by the world's time. */
const KEPT_SHARE = 0.99;

interface Closed {
  readonly token: bigint;
  readonly until: number;
}

/** Keys that nobody else may be granted yet, because their holders asked for a shortest hold. */
export class ClosedKeys {
  readonly #grants = new Map<string, { readonly lease: bigint; readonly at: number }>();
  readonly #closed = new Map<string, Closed>();

  constructor(
    private readonly time: VirtualTime,
    private readonly violate: (what: string) => void,
  ) {}

  /** The server has granted a new lease. */
  onGranted(key: string, lease: bigint): void {
    if (this.#isClosed(key)) this.violate(`${key}: granted within its shortest hold`);
    this.#grants.set(key, { lease, at: this.time.now });
  }

  /** The server frees a lease that has not run out. */
  onFreed(key: string, lease: bigint): void {
    const isHolders = leaseOf(this.#closed.get(key)?.token ?? 0n) === lease;
    if (isHolders && this.#isClosed(key)) this.violate(`${key}: freed within its shortest hold`);
  }

  /** A caller has the key, from the server, by re-entry, or from the caller before. */
  enter({ key, fencingToken: token }: LockHandle, minHoldMs = 0): void {
    if (this.#closed.get(key)?.token === token) return;
    if (this.#isClosed(key)) this.violate(`${key}: handed on within its shortest hold`);
    const granted = this.#grants.get(key);
    if (minHoldMs === 0 || granted?.lease !== leaseOf(token)) return;
    this.#closed.set(key, { token, until: granted.at + minHoldMs * KEPT_SHARE });
  }

  #isClosed(key: string): boolean {
    return this.time.now < (this.#closed.get(key)?.until ?? 0);
  }
}

function leaseOf(token: bigint): bigint {
  return token >> HAND_OFF_BITS;
}
