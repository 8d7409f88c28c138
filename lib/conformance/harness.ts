import type { LeaseStore } from '../core/index.js';

/** Store and its server, for the conformance suite. */
export interface LeaseStoreHarness {
  /** Opens an independent client, as another process would. The suite closes it. */
  connect(): LeaseStore | Promise<LeaseStore>;
  /**
   * Shortest time to live in milliseconds that is worth testing: ten round trips or more. For leases that end with a
   * session, the TTL of the session.
   */
  readonly shortTtlMs: number;
  /**
   * Takes `key` away from its holder on the server, as an operator would.
   * @default losses of this kind are not tested
   */
  revoke?(key: string): Promise<void> | void;
  /**
   * Keeps the server from answering, without closing connections. Returns a function that ends the silence.
   * @default silence is not tested
   */
  freeze?(): Promise<Thaw> | Thaw;
}

/** Function that ends the silence of `freeze`. */
export type Thaw = () => Promise<void> | void;
