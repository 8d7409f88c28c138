import type { LeaseStore } from '../core/index.js';

/** A store and its server, as the conformance suite sees them. */
export interface LeaseStoreHarness {
  /** An independent client, as another process would have. The suite closes it. */
  connect(): LeaseStore | Promise<LeaseStore>;
  /** The shortest time to live worth testing: ten round trips or more. With sessions, that of a session. */
  readonly shortTtlMs: number;
  /** Takes `key` from its holder behind its back, as an operator would. @default losses of this kind are not tested */
  revoke?(key: string): Promise<void> | void;
  /**
   * Keeps the server from answering, without closing connections; what it returns ends that.
   * @default silence is not tested
   */
  freeze?(): Promise<Thaw> | Thaw;
}

export type Thaw = () => Promise<void> | void;
