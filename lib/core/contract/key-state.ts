import type { Share } from './claim.js';
import type { Holder } from './holder.js';

/** Who waits for a key, as far as the server knows: several callers of one process may be behind one owner. */
export interface KeyWaiter extends Partial<Holder> {
  readonly owner: string;
  /** How much of the key it wants, said by `LockService.look`. Absent: all of it. */
  readonly share?: Share;
}

/** Who has a key, as far as the server knows. */
export interface KeyHolder extends KeyWaiter {
  /**
   * A store gives that of the lease; `LockService.look` that of the first who had it, to which each hand-off within the
   * process adds one. Absent where the server does not keep it.
   */
  readonly fencingToken?: bigint;
  /** How much of the lease is left. Absent where it ends with a session or a connection. */
  readonly leftMs?: number;
}

/** One reading of what the server keeps for a key. */
export interface LeaseState {
  /** Absent: nobody has the key. */
  readonly holder?: KeyHolder;
  /** Where several have it: all of them, first come first, `holder` among them. */
  readonly holders?: readonly KeyHolder[];
  /** First come first, 1,000 of them at most. Absent where the server keeps no line. */
  readonly waiters?: readonly KeyWaiter[];
}

export interface KeyState extends LeaseState {
  /** Without the namespace. */
  readonly key: string;
}

/** How many of those who wait a reading has at most. */
export const MOST_WAITERS = 1_000;
