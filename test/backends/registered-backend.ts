import type { BackendHarness } from '../conformance/backend-harness.js';

export interface HarnessOptions {
  /** The TTL of all locks of a session, whatever a caller asks for. Only backends with sessions look at it. */
  readonly sessionTtlMs?: number;
}

/** How many round trips each step takes. A pair says: at least, and at most. */
export interface Costs {
  /** Acquires a key that is free and was used before. */
  readonly acquire: number;
  readonly release: number;
  /** To release a key at the end of its `minHoldMs`. @default release */
  readonly reopen?: number;
  readonly renew: number;
  /** To ask once for a key that is held. */
  readonly refused: number;
  /** To wait for one and a half seconds. */
  readonly wait: number | readonly [atLeast: number, atMost: number];
  /** The release, and everything until the one who waits has the lease. A poller may ask once in vain meanwhile. */
  readonly handOver: number | readonly [atLeast: number, atMost: number];
}

/** Text that a request to acquire, and one to release, has on the wire. */
export interface Wire {
  readonly acquire: string;
  readonly release: string;
}

/** A theme of `test/faults`. */
export type FaultName =
  | 'callers'
  | 'costs'
  | 'fence'
  | 'hammer'
  | 'history'
  | 'history-of-kills'
  | 'history-of-shares'
  | 'idle'
  | 'idle-in-line'
  | 'jobs'
  | 'leaders'
  | 'lost-grant'
  | 'network'
  | 'order'
  | 'order-of-slow-sessions'
  | 'outcomes'
  | 'processes'
  | 'resend'
  | 'servers';

export interface RegisteredBackend {
  /** Servers of its own, and how clients reach them. */
  readonly harness: (options?: HarnessOptions) => BackendHarness;
  /**
   * Whether it stands for its family in the quick tier: there it alone has the timed promises and the faults. @default false
   */
  readonly quick?: boolean;
  /** The themes of `test/faults` that it goes through. */
  readonly faults: readonly FaultName[];
  /** Whether `sessionTtlMs` matters. @default false */
  readonly sessions?: boolean;
  /** For the theme `costs`. */
  readonly costs?: Costs;
  /** For the theme `network`. */
  readonly wire?: Wire;
  /** Whether the promises that are exported for the stores of others run on it, too. @default false */
  readonly leaseStore?: boolean;
  /** Whether `lockStore` serves `@nestjs/locks` by it. @default false */
  readonly lockStore?: boolean;
}
