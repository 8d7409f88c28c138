import type { ResolvedOptions } from '../options/lock-options.js';
import { assertNumber, assertOptions } from '../kit/option-checks.js';
import type { LockHandle } from '../holding/lock-handle.js';

/** Work of a leader. It should return soon after `term.signal` aborts. The term's fencing token is its epoch. */
export type LeaderWork = (term: LockHandle) => unknown;

/** Options of a leadership. */
export interface LeadOptions {
  /** Milliseconds without a leader after a leader has died. @default as for `acquire` */
  ttlMs?: number;
  /** See `AcquireOptions`. @default as for `acquire` */
  lockDelayMs?: number;
  /**
   * Milliseconds that `close` and a shutdown wait for the work after its signal has aborted. Work that takes longer
   * keeps the key. @default 5_000
   */
  graceMs?: number;
  /** Signal whose abort closes the leadership, as `close()` does. */
  signal?: AbortSignal;
}

const LEAD_OPTIONS = ['ttlMs', 'lockDelayMs', 'graceMs', 'signal'];

/** Options of a leader's lock, which override the service's defaults. */
export const LEADER_LOCK_OPTIONS: Partial<ResolvedOptions> = {
  waitMs: Infinity,
  watchdog: true,
  maxHoldMs: Infinity,
  minHoldMs: 0,
  reentrant: true,
  awaitRelease: true,
};

/** @throws LockConfigurationError */
export function assertLeadOptions(options: LeadOptions): void {
  assertOptions(options, LEAD_OPTIONS, 'lead');
  if (options.graceMs !== undefined) assertNumber('graceMs', options.graceMs, 0, Infinity);
}
