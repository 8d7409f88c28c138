import type { ItemNames } from './item-names.js';

/** An item on the server. */
export interface Present {
  readonly value: string;
  /** Changes with every write. Valid with the server that gave it, and on the connection it came by. */
  readonly cas: string;
  /** How long the server will keep it, where it says so: whole seconds, `Infinity` for ever. */
  readonly remainingS?: number;
}

export interface MemcachedLease {
  readonly names: ItemNames;
  readonly value: string;
  /** By the server's clock, in seconds since 1970: such an item cannot end early, whatever the server's timers do. */
  readonly expiresAt: number;
}

/** How leases are asked for. Each method is one round trip, and trusts no earlier reading of another process. */
export interface MemcachedDialect {
  /**
   * Stores the lease unless something is there, counts one up, and tells what is there then. Without a counter the
   * token is `firstToken` or the next, which may cost a second round trip.
   */
  acquire(
    lease: MemcachedLease,
    firstToken: bigint,
  ): Promise<{ added: boolean; token: bigint; present: Present | null }>;
  /** The next token. */
  count(names: ItemNames, firstToken: bigint): Promise<bigint>;
  /**
   * Writes the lease in the index of the very item that has this cas id. Never creates one. Tells what is there then.
   */
  renew(lease: MemcachedLease, cas: string): Promise<Present | null>;
  look(name: string): Promise<Present | null>;
  /** Deletes the very item that has this cas id. False: it is another one, or none. */
  remove(name: string, cas: string): Promise<boolean>;
  /** Stores an item unless one is there; `expiresAt` 0 is never. Tells what is there then. */
  add(name: string, value: string, expiresAt: number): Promise<{ added: boolean; present: Present | null }>;
}

/** How long a counter outlives its creation; later, the clock alone makes tokens grow. */
export const FENCE_TTL_S = 86_400;
