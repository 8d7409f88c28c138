import type { ResolvedOptions } from '../options/lock-options.js';
import { assertNumber, assertOptions } from '../kit/option-checks.js';
import type { LockHandle } from '../holding/lock-handle.js';

/** Runs while this process leads, and returns soon after `term.signal` aborts. The term's fencing token is its epoch. */
export type LeaderWork = (term: LockHandle) => unknown;

export interface LeadOptions {
  /** How long nobody leads after the leader has died. @default as for `acquire` */
  ttlMs?: number;
  /** See `AcquireOptions`. @default as for `acquire` */
  lockDelayMs?: number;
  /**
   * How long `close` and a shutdown wait for the work once its signal has aborted, in milliseconds. Work that goes on
   * keeps the key. @default 5_000
   */
  graceMs?: number;
  /** Its abort is a `close()`. */
  signal?: AbortSignal;
}

const NAMES = ['ttlMs', 'lockDelayMs', 'graceMs', 'signal'];

/** The options of the lock itself, whatever the service's defaults are. */
export const OFFICE: Partial<ResolvedOptions> = {
  waitMs: Infinity,
  watchdog: true,
  maxHoldMs: Infinity,
  minHoldMs: 0,
  reentrant: true,
  awaitRelease: true,
};

/** @throws LockConfigurationError */
export function assertLeadOptions(options: LeadOptions): void {
  assertOptions(options, NAMES, 'lead');
  if (options.graceMs !== undefined) assertNumber('graceMs', options.graceMs, 0, Infinity);
}
