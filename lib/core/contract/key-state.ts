import type { Share } from './claim.js';
import type { Holder } from './holder.js';

/** Owner that waits for a key, as far as the server knows. It may stand for several callers of one process. */
export interface KeyWaiter extends Partial<Holder> {
  readonly owner: string;
  /** Part of the key that it wants, told by `LockService.look`. Absent: all of it. */
  readonly share?: Share;
}

/** Owner that has a key, as far as the server knows. */
export interface KeyHolder extends KeyWaiter {
  /**
   * Fencing token. A store tells the lease's; `LockService.look` tells that of the first holder of the lease, to which each
   * hand-off within the process adds one. Absent where the server does not keep it.
   */
  readonly fencingToken?: bigint;
  /** Milliseconds until the lease ends. Absent where it ends with a session or a connection. */
  readonly leftMs?: number;
}

/** State of a key on the server, by one reading. */
export interface LeaseState {
  /** Absent: the key is free. */
  readonly holder?: KeyHolder;
  /** All holders in order of arrival, where several have the key. `holder` is among them. */
  readonly holders?: readonly KeyHolder[];
  /** Waiters in order of arrival, 1,000 at most. Absent where the server keeps no queue. */
  readonly waiters?: readonly KeyWaiter[];
}

/** State of a key, as `LockService.look` tells it. */
export interface KeyState extends LeaseState {
  /** Key without the namespace. */
  readonly key: string;
}

/** Maximum number of waiters in a reading. */
export const MAX_WAITERS = 1_000;
