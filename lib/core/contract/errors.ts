import { errorText } from './error-text.js';
import type { Holder } from './holder.js';

const BRAND = Symbol.for('nestjs-distributed-lock/error');

/** Base of every error of this library. `code` is stable, for programs; the message is for people. */
export abstract class LockError extends Error {
  abstract readonly code: string;
  /** Name of the class, written out because bundlers may shorten the names of classes. */
  abstract override readonly name: string;

  constructor(
    message: string,
    /** Key that the error is about, with the namespace as in events, or an empty text. */
    readonly key: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }

  /** Returns the fields for `JSON.stringify`. Bigints become texts, because `JSON.stringify` refuses them. */
  toJSON(): object {
    const entries = Object.entries(this).map(([name, value]) => [name, typeof value === 'bigint' ? `${value}` : value]);
    return { message: this.message, ...Object.fromEntries(entries) };
  }
}

/** The key is held, and may be free later. Nothing of the request stays on the server. */
export class LockTimeoutError extends LockError {
  override readonly name = 'LockTimeoutError';
  readonly code = 'LOCK_TIMEOUT';
  readonly waitMs: number;
  readonly holder: Holder | undefined;

  constructor(key: string, details: { waitMs: number; holder?: Holder | undefined; message?: string | undefined }) {
    super(details.message ?? timeoutMessage(key, details.waitMs, details.holder), key);
    this.waitMs = details.waitMs;
    this.holder = details.holder;
  }
}

function timeoutMessage(key: string, waitMs: number, holder: Holder | undefined): string {
  const heldBy = holder ? ` by ${holder.label ?? holder.host} (pid ${holder.pid})` : '';
  return waitMs === 0
    ? `${quote(key)} is held${heldBy}, and waitMs is 0`
    : `${quote(key)} is still held${heldBy} after ${Math.round(waitMs)} ms`;
}

export type LossReason = 'expired' | 'revoked' | 'max-hold' | 'shutdown';

const LOSS_MESSAGES: Record<LockLostError['reason'], string> = {
  expired: 'could not be renewed in time; another process may hold it by now',
  revoked: 'was taken away on the server: it expired there, or somebody deleted it',
  'max-hold': 'was held for maxHoldMs and given back',
  released: 'was released before the work that needs it was done',
  transferred: 'cannot be adopted: its ticket was used before, or its time is over',
  resigned: 'is about to be released, because its leader steps back',
  shutdown: 'ended because the lock service was closed, as it is when its application shuts down',
};

/** The lock ended before the work did. Only the fencing token protects against later writes of the work. */
export class LockLostError extends LockError {
  override readonly name = 'LockLostError';
  readonly code = 'LOCK_LOST';

  constructor(
    key: string,
    /** See `LockHandle.assertHeld` (`released`), `LockService.adopt` (`transferred`), `Leadership` (`resigned`). */
    readonly reason: LossReason | 'released' | 'transferred' | 'resigned',
  ) {
    super(`${quote(key)} ${LOSS_MESSAGES[reason]}`, key);
  }
}

/**
 * The backend gave no usable answer. It is unknown whether the key is held. The request is undone in the background.
 */
export class LockBackendError extends LockError {
  override readonly name = 'LockBackendError';
  readonly code = 'LOCK_BACKEND';
  readonly backend: string;
  readonly operation: string;

  constructor(key: string, details: { backend: string; operation: string; cause: unknown }) {
    const subject = key === '' ? '' : ` ${quote(key)}`;
    super(`${details.backend} could not ${details.operation}${subject}: ${errorText(details.cause)}`, key, {
      cause: details.cause,
    });
    this.backend = details.backend;
    this.operation = details.operation;
  }
}

/** The lock service is stopped and grants no locks. Another process may serve the caller. */
export class LockShutdownError extends LockError {
  override readonly name = 'LockShutdownError';
  readonly code = 'LOCK_SHUTDOWN';

  constructor(key = '') {
    const subject = key === '' ? 'the lock' : quote(key);
    super(`${subject} is refused: this lock service is stopped, as it is when its application shuts down`, key);
  }
}

/** Wait of a call tree for a key while it holds other keys. */
export interface LockWait {
  /** Keys that the call tree holds, innermost first. */
  readonly held: readonly string[];
  readonly wanted: string;
}

/**
 * This call tree would wait for itself. It holds `wanted`, and not both of its calls ask for re-entry. Or it holds a key
 * for which the holder of `wanted` waits.
 */
export class LockDeadlockError extends LockError {
  override readonly name = 'LockDeadlockError';
  readonly code = 'LOCK_DEADLOCK';

  constructor(
    /** Keys that this call tree holds, innermost first. */
    readonly held: readonly string[],
    readonly wanted: string,
    /** Waits of other call trees in this process: from the holder of `wanted` to a tree that waits for this one. */
    readonly others: readonly LockWait[] = [],
    message = circleMessage(wanted, others),
  ) {
    super(message, wanted);
  }
}

function circleMessage(wanted: string, others: readonly LockWait[]): string {
  const waitDescriptions = others.map(
    (other, i) => `the holder of ${quote(others[i - 1]?.wanted ?? wanted)} waits for ${quote(other.wanted)}`,
  );
  return (
    `waiting for ${quote(wanted)} would never end: ${waitDescriptions.join(', ')}, which this call tree holds. ` +
    'Take keys in one order everywhere, or together by withLocks'
  );
}

/** A protected resource has seen a newer fencing token, so that this holder's lock is over. Nothing was written. */
export class StaleFenceError extends LockError {
  override readonly name = 'StaleFenceError';
  readonly code = 'LOCK_STALE_FENCE';
  readonly token: bigint;
  readonly newest: bigint | undefined;

  constructor(resource: string, details: { token: bigint; newest?: bigint | undefined }) {
    const newest = details.newest === undefined ? 'a newer one' : `${details.newest}`;
    super(
      `${quote(resource)} has seen ${newest}; fencing token ${details.token} is stale, the write was refused`,
      resource,
    );
    this.token = details.token;
    this.newest = details.newest;
  }
}

/** A setting or a request can never work. The error is thrown as early as possible, not at first use. */
export class LockConfigurationError extends LockError {
  override readonly name = 'LockConfigurationError';
  readonly code = 'LOCK_CONFIGURATION';

  constructor(
    message: string,
    /** Name of the wrong option, or `key` for a wrong key. */
    readonly option: string,
    key = '',
  ) {
    super(message, key);
  }
}

/**
 * Other writers changed the same rows first, in each attempt. Nothing was written, and a later attempt may succeed. It
 * is no `LockError`, because no lock is held.
 */
export class OptimisticConflictError extends Error {
  readonly code = 'OPTIMISTIC_CONFLICT';

  constructor(
    message: string,
    /** Number of times that the work ran. */
    readonly attempts: number,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

Object.defineProperty(LockError.prototype, BRAND, { value: 'LockError' });
Object.defineProperty(OptimisticConflictError.prototype, BRAND, { value: 'OptimisticConflictError' });

interface ErrorsByCode {
  readonly LOCK_TIMEOUT: LockTimeoutError;
  readonly LOCK_LOST: LockLostError;
  readonly LOCK_BACKEND: LockBackendError;
  readonly LOCK_SHUTDOWN: LockShutdownError;
  readonly LOCK_DEADLOCK: LockDeadlockError;
  readonly LOCK_STALE_FENCE: StaleFenceError;
  readonly LOCK_CONFIGURATION: LockConfigurationError;
  readonly OPTIMISTIC_CONFLICT: OptimisticConflictError;
}

/**
 * Returns whether `error` is a `LockError`, or with `code`, whether it is this library's error with that code. Unlike
 * `instanceof` it recognizes errors of another copy of the package, too.
 */
export function isLockError(error: unknown): error is LockError;
export function isLockError<Code extends keyof ErrorsByCode>(error: unknown, code: Code): error is ErrorsByCode[Code];
export function isLockError(error: unknown, code?: string): boolean {
  if (typeof error !== 'object' || error === null || !(BRAND in error)) return false;
  return code === undefined ? error[BRAND] === 'LockError' : 'code' in error && error.code === code;
}

/** A request was not sent and never will be, so that it needs no clean-up on the server. */
export class NotSentError extends Error {
  readonly failureKind = 'silent';
}

const MAX_QUOTED_LENGTH = 200;

/** Returns a key for a message: in quotes, with control characters escaped, and shortened. */
export function quote(key: string): string {
  return JSON.stringify(key.length > MAX_QUOTED_LENGTH ? `${key.slice(0, MAX_QUOTED_LENGTH)}…` : key);
}
