import type { ItemNames } from './item-names.js';

export interface StoredItem {
  readonly value: string;
  /** Cas unique, which changes with every write. It is valid only on the connection that read it. */
  readonly cas: string;
  /**
   * Whole seconds for which the server will keep the item; `Infinity` for ever. Absent where the server does not tell.
   */
  readonly remainingS?: number;
}

export interface MemcachedLease {
  readonly names: ItemNames;
  readonly value: string;
  /** Date of expiry in seconds since 1970, by the server's clock. An item with a duration could expire too early. */
  readonly exptime: number;
}

export interface AddResult {
  readonly isAdded: boolean;
  /** The item that is stored after the command. */
  readonly item: StoredItem | null;
}

/** Operations of the store, for which the protocols `meta` and `classic` have commands of their own. */
export interface MemcachedDialect {
  /**
   * Adds the item of a lease unless the key has one, and increments the token counter in both cases. A missing counter
   * starts at `firstToken`, which may cost a second round trip.
   */
  acquireLease(lease: MemcachedLease, firstToken: bigint): Promise<AddResult & { readonly token: bigint }>;
  incrementCounter(names: ItemNames, firstToken: bigint): Promise<bigint>;
  /** Overwrites the item that has this cas unique, and never creates one. Returns the item that is stored now. */
  replaceAndGetItem(lease: MemcachedLease, cas: string): Promise<StoredItem | null>;
  getItem(name: string): Promise<StoredItem | null>;
  deleteItem(name: string, cas: string): Promise<boolean>;
  /** An `exptime` of 0 never expires. */
  addItem(name: string, value: string, exptime: number): Promise<AddResult>;
}

/**
 * Seconds for which the server keeps a token counter after its creation. A later counter starts with the time in
 * microseconds, which is far above the last token. Counters that are kept longer would fill a server of many keys.
 */
const COUNTER_TTL_S = 600;

/** Returns the date of expiry of a counter that starts with `firstToken`, a time in microseconds. */
export function counterExptime(firstToken: bigint): bigint {
  return firstToken / 1_000_000n + BigInt(COUNTER_TTL_S);
}
