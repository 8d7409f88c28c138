import type { BackendHealth, Guarantee, Holder, HolderMetadata, RenewalListener, TtlLimits } from './lock-backend.js';

/** The smaller door: a store that knows "write if absent, with a time to live". `PollingBackend` makes a `LockBackend` of it. */
export interface LeaseStore {
  readonly name: string;
  readonly guarantee: Guarantee;
  /** See `LockBackend`. */
  readonly ttlLimits?: TtlLimits;
  /** See `Lease`. */
  readonly tokenStep?: number;
  /**
   * With each caller that asks, all of them pause for so much longer between two questions, up to five seconds: a store that
   * many ask has to answer those who hold its keys too. @default 0
   */
  readonly pollMsPerWaiter?: number;
  /** See `LockBackend`. */
  start?(): Promise<void>;
  /**
   * One atomic step. Asking again with the same owner succeeds, with the same token and a full `ttlMs`: a lost reply is
   * retried, never a self-made deadlock. Must settle within a bounded time, also on a server that does not answer.
   */
  tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata, asker?: Asker): Promise<LeaseAttempt>;
  /** Still `owner`'s, for another `ttlMs`? Never re-creates. */
  renew(key: string, owner: string, ttlMs: number): Promise<boolean>;
  /** Prepares all renewals of a lease: what it returns is its `renewFor`. See `Lease`. */
  renewerOf?(key: string, owner: string, ttlMs: number): (listener: RenewalListener) => void;
  /** Whether the key was `owner`'s. A store that queues takes `owner` out of the queue too. */
  release(key: string, owner: string): Promise<boolean>;
  /** See `LockBackend`. */
  isHeldBy?(key: string, owner: string): Promise<boolean>;
  /**
   * `owner` waits from now on: call `wake` when `key` may have become free. Only a hint: a missing one costs latency, never
   * safety. A store that queues lets the watched owners queue in `tryAcquire`. What it returns ends the watch.
   */
  watch?(key: string, owner: string, wake: () => void): () => void;
  close(): Promise<void>;
  health?(): BackendHealth;
  onHealthChange?(listener: (health: BackendHealth) => void): () => void;
}

/** Whoever asks for a lease, for stores that let a request wait before they send it. */
export interface Asker {
  /**
   * A store calls this right before it sends the request from which the lease counts. `false`: nobody waits for the answer any
   * more, and the store rejects with `NotSentError` instead.
   */
  onSend(): boolean;
}

export type LeaseAttempt =
  | { readonly acquired: true; readonly fencingToken: bigint }
  | {
      readonly acquired: false;
      /** What is left of the holder's lease, when the store knows. */
      readonly retryAfterMs: number | null;
      readonly holder?: Holder;
    };
