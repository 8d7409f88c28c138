import type { Share } from './claim.js';
import type { Holder } from './holder.js';

/** Owner that waits for a key, as far as the server knows. Several callers of one process may share such an owner. */
export interface KeyWaiter extends Partial<Holder> {
  readonly owner: string;
  /** Part of the key that the owner wants, added by `LockService.look`. Absent: all of the key. */
  readonly share?: Share;
}

/** Owner that has a key, as far as the server knows. */
export interface KeyHolder extends KeyWaiter {
  /**
   * Fencing token. A store returns the token of the lease. `LockService.look` returns the token of the lease's first
   * caller. After hand-offs the present caller has a greater token. Absent where the server stores none.
   */
  readonly fencingToken?: bigint;
  /** Milliseconds until the lease ends. Absent for a lease that ends with a session or a connection. */
  readonly leftMs?: number;
}

/** State of a key on the server, from one reading. */
export interface LeaseState {
  /** Absent: the key is free. */
  readonly holder?: KeyHolder;
  /** All holders in order of arrival, where several have the key. `holder` is among them. */
  readonly holders?: readonly KeyHolder[];
  /** Waiters in order of arrival, 1,000 at most. Absent where the server keeps no queue. */
  readonly waiters?: readonly KeyWaiter[];
}

/** Result of `LockService.look`. */
export interface KeyState extends LeaseState {
  /** Key without the namespace. */
  readonly key: string;
}

/** Maximum number of waiters in a reading. */
export const MAX_WAITERS = 1_000;
