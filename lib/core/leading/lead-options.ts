import type { ResolvedOptions } from '../options/lock-options.js';
import { assertNumber, assertOptions } from '../kit/option-checks.js';
import type { LockHandle } from '../holding/lock-handle.js';

/** Work of a leader. The work should return soon after `term.signal` aborts. Each term has a greater fencing token. */
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

const LEAD_OPTION_NAMES = ['ttlMs', 'lockDelayMs', 'graceMs', 'signal'];

/** Fixed options of every leader's lock, whatever the defaults of its service are. */
export const LEADER_LOCK_OPTIONS: Partial<ResolvedOptions> = {
  waitMs: Infinity,
  watchdog: true,
  maxHoldMs: Infinity,
  minHoldMs: 0,
  reentrant: false,
  awaitRelease: true,
};

/** @throws LockConfigurationError */
export function assertLeadOptions(options: LeadOptions): void {
  assertOptions(options, LEAD_OPTION_NAMES, 'lead');
  if (options.graceMs !== undefined) assertNumber('graceMs', options.graceMs, 0, Infinity);
}
