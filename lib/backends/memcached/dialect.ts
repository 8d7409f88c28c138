import type { ItemNames } from './item-names.js';

export interface Present {
  readonly value: string;
  /** Changes with every write. Valid on the connection that brought it. */
  readonly cas: string;
  /** How long the server will keep it, if known: whole seconds, `Infinity` for ever. */
  readonly remainingS?: number;
}

export interface MemcachedLease {
  readonly names: ItemNames;
  readonly value: string;
  /** By the server's clock, in seconds since 1970. An item with a date cannot end early. */
  readonly expiresAt: number;
}

export interface Addition {
  readonly added: boolean;
  /** The item that is there then. */
  readonly present: Present | null;
}

/** The requests for leases. Each method is one round trip, and trusts no earlier reading of another process. */
export interface MemcachedDialect {
  /** Adds the lease, and counts one up: from `firstToken` without a counter, which may cost a second round trip. */
  acquire(lease: MemcachedLease, firstToken: bigint): Promise<Addition & { readonly token: bigint }>;
  count(names: ItemNames, firstToken: bigint): Promise<bigint>;
  /** Overwrites the very item that has this cas id with the lease. Never creates one. The item that is there then. */
  renew(lease: MemcachedLease, cas: string): Promise<Present | null>;
  look(name: string): Promise<Present | null>;
  /** Deletes the very item that has this cas id. False: it is another one, or none. */
  remove(name: string, cas: string): Promise<boolean>;
  /** Stores an item unless one is there; `expiresAt` 0 is never. */
  add(name: string, value: string, expiresAt: number): Promise<Addition>;
}

/** How long a counter lives. Afterwards the clock alone makes tokens grow. */
export const FENCE_TTL_S = 86_400;
