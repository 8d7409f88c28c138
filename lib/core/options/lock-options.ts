import { type HandOffOptions, MAX_HAND_OFFS } from './hand-off-options.js';
import {
  assertBoolean,
  assertNumber,
  assertOneOf,
  assertOptions,
  assertText,
  assertWhole,
  isObject,
  refuseOption,
  shownOption,
} from '../kit/option-checks.js';
import { MAX_PERMITS } from '../contract/claim.js';
import type { LockObserver } from '../events/lock-observer.js';
import type { Clock } from '../time/timers.js';

/** Options of a lock that is taken without waiting. */
export interface TryAcquireOptions {
  /** Milliseconds until the key is free if this process dies. Sessions have a TTL of their own. @default 30_000 */
  ttlMs?: number;
  /**
   * Milliseconds for which the server keeps the key closed after its holder has lost it, so that requests of that
   * holder can still arrive. A release ends the delay. With sessions the delay is a part of the session's TTL. Refused
   * where a lock ends with its holder's connection. @default 0
   */
  lockDelayMs?: number;
  /**
   * Whole milliseconds for which the key stays closed from the acquisition on, even after a release or a crash. The
   * lock is never handed off. After a crash the time counts from the last renewal. Where leases end with a session, a
   * crash or a shutdown ends the time. Refused where leases end with a connection. @default 0
   */
  minHoldMs?: number;
  /** Whether the lock is renewed every `ttlMs / 3`. If not, it ends after `ttlMs` in any case. @default true */
  watchdog?: boolean;
  /** Milliseconds after which the lock is lost, so that a hung task cannot keep a key for ever. @default Infinity */
  maxHoldMs?: number;
  /**
   * Whether calls that start inside this lock may share it, and this call may share the lock that it starts in. Both
   * calls have to say so, and the options of the outermost apply. Otherwise nobody is inside a key twice, and whoever
   * asks for it again is refused at once. @default false
   */
  reentrant?: boolean;
  /**
   * Kind of the lock. `'shared'`: any number of holders at a time, but none beside an exclusive one. Refused by
   * backends that keep one holder a key. @default 'exclusive'
   */
  mode?: 'exclusive' | 'shared';
  /**
   * Maximum number of permits of the key at a time, over all processes. Each caller is bound by the limit that it gives
   * itself. A caller without a limit wants all of the key. Refused by backends that cannot keep so many permits.
   */
  limit?: number;
  /** Number of permits that this call takes of the `limit`. @default 1 */
  permits?: number;
}

/** Options of a lock that a caller may wait for. */
export interface AcquireOptions extends TryAcquireOptions {
  /** Milliseconds that the caller waits at most: `0` for one attempt, `Infinity` for ever. @default 10_000 */
  waitMs?: number;
  /**
   * Whether `withLock` waits for its release. `false` saves a round trip, but the key may be held for a moment after
   * `withLock` has resolved. A failed release is reported to observers in both cases. @default true
   */
  awaitRelease?: boolean;
  /** Signal that ends the wait: `acquire` then rejects with `signal.reason`. The signal does not end a held lock. */
  signal?: AbortSignal;
}

/** Options of an adopted lock, which claims as much of the key as its former holder did. */
export type AdoptOptions = Omit<AcquireOptions, 'mode' | 'limit' | 'permits'>;

/** Options of a lock service. */
export interface LockServiceOptions extends HandOffOptions {
  /** Defaults of `acquire`, `tryAcquire` and `withLock`. */
  defaults?: AcquireOptions;
  /** Name that is put before every key, with a colon, so that applications on one server do not share locks. */
  namespace?: string;
  /** Name of this process in the errors of waiting callers. @default the host's name */
  label?: string;
  /** Maximum number of callers of this process that wait for one key. Others time out at once. @default 100_000 */
  maxWaiters?: number;
  /**
   * Milliseconds that `shutdown` waits for the work under locks, in which callers may still wait for a lock. In an
   * application of Nest the time begins before the server waits for its requests. @default 10_000
   */
  shutdownGraceMs?: number;
  observers?: readonly LockObserver[];
  /**
   * Whether to look for keys that are taken in orders which can deadlock. The event `orderSuspect` reports classes of
   * keys that form a circle, and call trees that wait for each other get a `LockDeadlockError`. A function returns the
   * class of a key without the namespace. `true`: the key with `*` for numbers, or with Nest the template of `@Locked`.
   * At most 1,000 classes. @default false
   */
  orderWarnings?: boolean | ((key: string) => string);
  /** Clock of the service, for tests. @default the system's monotonic clock */
  clock?: Clock;
}

type OptionWithoutDefault = 'signal' | 'limit' | 'permits';
export type ResolvedOptions = Required<Omit<AcquireOptions, OptionWithoutDefault>> &
  Pick<AcquireOptions, OptionWithoutDefault>;

export const DEFAULTS: Readonly<ResolvedOptions> = Object.freeze({
  ttlMs: 30_000,
  waitMs: 10_000,
  lockDelayMs: 0,
  minHoldMs: 0,
  watchdog: true,
  maxHoldMs: Infinity,
  reentrant: false,
  awaitRelease: true,
  mode: 'exclusive',
});

const ACQUIRE_OPTION_NAMES = [...Object.keys(DEFAULTS), 'signal', 'limit', 'permits'];
const SERVICE_OPTION_NAMES = [
  'defaults',
  'namespace',
  'label',
  'maxHandOffs',
  'maxHandOffMs',
  'maxWaiters',
  'shutdownGraceMs',
  'observers',
  'orderWarnings',
  'clock',
];

/** Shortest TTL in which a renewal can be sent, answered and trusted. */
export const MIN_TTL_MS = 10;
export const MAX_TTL_MS = 2 ** 31 - 1;
/** Maximum length of a label, which is written beside every lease. */
const MAX_LABEL_LENGTH = 1_000;

/**
 * Returns the options of a call, with `defaults` for missing ones.
 * @throws LockConfigurationError naming the option, its value and the allowed values
 */
export function resolveOptions(
  options: AcquireOptions | undefined,
  defaults: ResolvedOptions = DEFAULTS,
): ResolvedOptions {
  if (options === undefined) return defaults;
  assertOptions(options, ACQUIRE_OPTION_NAMES, 'acquire');
  const {
    ttlMs = defaults.ttlMs,
    waitMs = defaults.waitMs,
    lockDelayMs = defaults.lockDelayMs,
    minHoldMs = defaults.minHoldMs,
    watchdog = defaults.watchdog,
    maxHoldMs = defaults.maxHoldMs,
    reentrant = defaults.reentrant,
    awaitRelease = defaults.awaitRelease,
    signal = defaults.signal,
    mode = defaults.mode,
    limit,
    permits,
  } = options;
  const resolvedOptions: ResolvedOptions = {
    ttlMs,
    waitMs,
    lockDelayMs,
    minHoldMs,
    watchdog,
    maxHoldMs,
    reentrant,
    awaitRelease,
    mode,
  };
  if (limit !== undefined) resolvedOptions.limit = limit;
  if (permits !== undefined) resolvedOptions.permits = permits;
  if (signal !== undefined) resolvedOptions.signal = signal;
  assertNumber('ttlMs', resolvedOptions.ttlMs, MIN_TTL_MS, MAX_TTL_MS);
  assertNumber('lockDelayMs', resolvedOptions.lockDelayMs, 0, MAX_TTL_MS - resolvedOptions.ttlMs);
  assertWhole('minHoldMs', resolvedOptions.minHoldMs, 0, MAX_TTL_MS);
  assertNumber('waitMs', resolvedOptions.waitMs, 0, Infinity);
  assertNumber('maxHoldMs', resolvedOptions.maxHoldMs, 1, Infinity);
  assertBoolean('watchdog', resolvedOptions.watchdog);
  assertBoolean('reentrant', resolvedOptions.reentrant);
  assertBoolean('awaitRelease', resolvedOptions.awaitRelease);
  if (resolvedOptions.signal !== undefined && !(resolvedOptions.signal instanceof AbortSignal)) {
    refuseOption('signal', 'must be an AbortSignal');
  }
  assertClaim(resolvedOptions);
  return resolvedOptions;
}

function assertClaim({ mode, limit, permits }: ResolvedOptions): void {
  assertOneOf('mode', mode, ['exclusive', 'shared']);
  if (limit === undefined) {
    if (permits !== undefined) refuseOption('permits', 'needs a limit, of which they are taken');
    return;
  }
  assertWhole('limit', limit, 1, MAX_PERMITS);
  if (permits !== undefined) assertWhole('permits', permits, 1, limit);
  if (mode === 'shared') refuseOption('limit', "is for permits: leave out mode: 'shared', which has no limit");
}

/** Refuses defaults of options that depend on the key of a call. @throws LockConfigurationError */
export function assertDefaults(defaults: AcquireOptions | undefined): void {
  for (const name of ['mode', 'limit', 'permits'] as const) {
    if (defaults?.[name] !== undefined) {
      refuseOption(name, 'is no default of a service: give it with each key, to all who take that key');
    }
  }
}

/** @throws LockConfigurationError naming the option, its value and the allowed values */
export function assertServiceOptions(options: LockServiceOptions): void {
  assertOptions(options, SERVICE_OPTION_NAMES, 'lock service');
  if (options.maxHandOffs !== undefined) assertWhole('maxHandOffs', options.maxHandOffs, 0, MAX_HAND_OFFS);
  if (options.maxHandOffMs !== undefined) assertNumber('maxHandOffMs', options.maxHandOffMs, 0, Infinity);
  if (options.maxWaiters !== undefined) assertNumber('maxWaiters', options.maxWaiters, 0, Infinity);
  if (options.shutdownGraceMs !== undefined) assertNumber('shutdownGraceMs', options.shutdownGraceMs, 0, Infinity);
  assertOtherServiceOptions(options);
  const { namespace } = options;
  if (namespace !== undefined) {
    assertText('namespace', namespace, /^[\w.-]+$/u, 'letters, digits, "_", "." and "-", because a colon ends it');
  }
}

export function keyPrefixOf({ namespace }: LockServiceOptions): string {
  return namespace === undefined ? '' : `${namespace}:`;
}

function assertOtherServiceOptions({ label, observers, orderWarnings, clock }: LockServiceOptions): void {
  if (label !== undefined && (typeof label !== 'string' || label === '' || label.length > MAX_LABEL_LENGTH)) {
    refuseOption('label', `must be a text of 1 to ${MAX_LABEL_LENGTH} characters; it was ${shownOption(label)}`);
  }
  if (observers !== undefined && !(Array.isArray(observers) && observers.every(isObject))) {
    refuseOption(
      'observers',
      `must be a list of objects with methods named after events; it was ${shownOption(observers)}`,
    );
  }
  if (orderWarnings !== undefined && typeof orderWarnings !== 'boolean' && typeof orderWarnings !== 'function') {
    refuseOption('orderWarnings', `must be true, false or a function; it was ${shownOption(orderWarnings)}`);
  }
  if (clock !== undefined && !isClock(clock)) {
    refuseOption('clock', `must be an object with the methods now and schedule; it was ${shownOption(clock)}`);
  }
}

function isClock(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { now, schedule }: { now?: unknown; schedule?: unknown } = value;
  return typeof now === 'function' && typeof schedule === 'function';
}
