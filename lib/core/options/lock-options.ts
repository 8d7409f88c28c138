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
import { MOST_PERMITS } from '../contract/claim.js';
import type { LockObserver } from '../events/lock-observer.js';
import type { Clock } from '../time/timers.js';

export interface TryAcquireOptions {
  /** How long the key stays locked if this process dies. Sessions have their own. @default 30_000 */
  ttlMs?: number;
  /**
   * How much longer the server keeps the key closed than its holder trusts it: time for what a holder that crashed, or
   * lost the lock, had sent before to arrive. Not after a release. Where a session is the TTL it is a part of that;
   * refused where a lock ends with its holder's connection, which a crash does at once. @default 0
   */
  lockDelayMs?: number;
  /**
   * The key stays closed for so long from the acquisition on, also after the release and after a crash: whole
   * milliseconds. Nobody of this process gets it by hand-off. A caller that gave up before it had the lock leaves
   * nothing. A renewal begins it anew for a crash. Where a lease hangs on a session, a crash or a shutdown ends it with
   * that; refused where it hangs on a connection. @default 0
   */
  minHoldMs?: number;
  /** Renews while held, every `ttlMs / 3`. `false`: it ends after `ttlMs`, whatever the work does. @default true */
  watchdog?: boolean;
  /** After this time the lock is lost, so that a hung task cannot keep a key for ever. @default Infinity */
  maxHoldMs?: number;
  /**
   * Whether the same async call tree may take the key again. It then enters the lock that it has, which keeps the
   * options it was taken with: those of an inner call, such as its `ttlMs` and `maxHoldMs`, count only where that call
   * is the outermost.
   * @default true
   */
  reentrant?: boolean;
  /**
   * `'shared'`: as many at a time as come, while nobody has the key exclusively. Refused by backends that keep one holder
   * a key. @default 'exclusive'
   */
  mode?: 'exclusive' | 'shared';
  /**
   * At most so many permits of the key at a time, over all processes, each of which goes by its own limit. Whoever gives
   * none wants all of the key, and drains it. Refused by backends that cannot keep so many.
   */
  limit?: number;
  /** How many permits of the `limit` this call takes. @default 1 */
  permits?: number;
}

export interface AcquireOptions extends TryAcquireOptions {
  /** `0` never waits, `Infinity` waits for ever. @default 10_000 */
  waitMs?: number;
  /**
   * `false`: `withLock` does not wait for its release, and the turn of the next caller here begins when that is sent.
   * Saves a round trip. The key may then be held for a moment after `withLock` has resolved; a release that fails is
   * told to observers, as always. Where a store does not keep the order of what it is asked, the next turn begins with
   * the answer.
   * @default true
   */
  awaitRelease?: boolean;
  /** Gives up waiting; `acquire` then rejects with `signal.reason`. It does not end a lock that is held. */
  signal?: AbortSignal;
}

export interface LockServiceOptions extends HandOffOptions {
  /** Defaults of `acquire`, `tryAcquire` and `withLock`. */
  defaults?: AcquireOptions;
  /** Put before every key with a colon, so that applications which share a server do not share locks. */
  namespace?: string;
  /** How this process is named to those who wait for it. @default the host's name */
  label?: string;
  /** How many may wait for a key in this process until the next gets `LockTimeoutError`. @default 100_000 */
  maxWaiters?: number;
  /**
   * How long `shutdown` waits for the work under locks, in milliseconds. Nobody waits longer for a lock meanwhile. `0`
   * waits for nothing. In an application of Nest it begins before the server waits for its requests. @default 10_000
   */
  shutdownGraceMs?: number;
  observers?: readonly LockObserver[];
  /**
   * Looks for keys that are taken in orders which can deadlock, wherever a call tree with a lock waits for another one.
   * Classes of keys that were taken in a circle are told by the event `orderSuspect`, and trees of this process that
   * wait in a circle by `LockDeadlockError`. A function names the class of a key, which comes without the namespace;
   * `true`: the key with `*` for numbers, or with Nest the template of `@Locked`. At most 1,000 classes. @default false
   */
  orderWarnings?: boolean | ((key: string) => string);
  /** For tests. @default the system's monotonic clock */
  clock?: Clock;
}

type Open = 'signal' | 'limit' | 'permits';
export type ResolvedOptions = Required<Omit<AcquireOptions, Open>> & Pick<AcquireOptions, Open>;

export const DEFAULTS: Readonly<ResolvedOptions> = Object.freeze({
  ttlMs: 30_000,
  waitMs: 10_000,
  lockDelayMs: 0,
  minHoldMs: 0,
  watchdog: true,
  maxHoldMs: Infinity,
  reentrant: true,
  awaitRelease: true,
  mode: 'exclusive',
});

const ACQUIRE_OPTIONS = [...Object.keys(DEFAULTS), 'signal', 'limit', 'permits'];
const SERVICE_OPTIONS = [
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

/** The shortest time to live in which a renewal can be sent, answered and trusted. */
export const MIN_TTL_MS = 10;
const MAX_TTL_MS = 2 ** 31 - 1;
/** It is written beside every lease. */
const MAX_LABEL_LENGTH = 1_000;

/**
 * Fills in what a call left open.
 * @throws LockConfigurationError naming the option, what it was and what it may be
 */
export function resolveOptions(
  given: AcquireOptions | undefined,
  defaults: ResolvedOptions = DEFAULTS,
): ResolvedOptions {
  if (given === undefined) return defaults;
  assertOptions(given, ACQUIRE_OPTIONS, 'acquire');
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
  } = given;
  const resolved: ResolvedOptions = {
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
  if (limit !== undefined) resolved.limit = limit;
  if (permits !== undefined) resolved.permits = permits;
  if (signal !== undefined) resolved.signal = signal;
  assertNumber('ttlMs', resolved.ttlMs, MIN_TTL_MS, MAX_TTL_MS);
  assertNumber('lockDelayMs', resolved.lockDelayMs, 0, MAX_TTL_MS - resolved.ttlMs);
  assertWhole('minHoldMs', resolved.minHoldMs, 0, MAX_TTL_MS);
  assertNumber('waitMs', resolved.waitMs, 0, Infinity);
  assertNumber('maxHoldMs', resolved.maxHoldMs, 1, Infinity);
  assertBoolean('watchdog', resolved.watchdog);
  assertBoolean('reentrant', resolved.reentrant);
  assertBoolean('awaitRelease', resolved.awaitRelease);
  if (resolved.signal !== undefined && !(resolved.signal instanceof AbortSignal)) {
    refuseOption('signal', 'must be an AbortSignal');
  }
  assertClaim(resolved);
  return resolved;
}

function assertClaim({ mode, limit, permits }: ResolvedOptions): void {
  assertOneOf('mode', mode, ['exclusive', 'shared']);
  if (limit === undefined) {
    if (permits !== undefined) refuseOption('permits', 'needs a limit, of which they are taken');
    return;
  }
  assertWhole('limit', limit, 1, MOST_PERMITS);
  if (permits !== undefined) assertWhole('permits', permits, 1, limit);
  if (mode === 'shared') refuseOption('limit', "is for permits: leave out mode: 'shared', which has no limit");
}

/** What a service's calls want of a key differs by the key. @throws LockConfigurationError */
export function assertDefaults(given: AcquireOptions | undefined): void {
  for (const name of ['mode', 'limit', 'permits'] as const) {
    if (given?.[name] !== undefined) {
      refuseOption(name, 'is no default of a service: give it with each key, to all who take that key');
    }
  }
}

/** @throws LockConfigurationError naming the option, what it was and what it may be */
export function assertServiceOptions(options: LockServiceOptions): void {
  assertOptions(options, SERVICE_OPTIONS, 'lock service');
  if (options.maxHandOffs !== undefined) assertWhole('maxHandOffs', options.maxHandOffs, 0, MAX_HAND_OFFS);
  if (options.maxHandOffMs !== undefined) assertNumber('maxHandOffMs', options.maxHandOffMs, 0, Infinity);
  if (options.maxWaiters !== undefined) assertNumber('maxWaiters', options.maxWaiters, 0, Infinity);
  if (options.shutdownGraceMs !== undefined) assertNumber('shutdownGraceMs', options.shutdownGraceMs, 0, Infinity);
  assertParts(options);
  const { namespace } = options;
  if (namespace !== undefined) {
    assertText('namespace', namespace, /^[\w.-]+$/u, 'letters, digits, "_", "." and "-", because a colon ends it');
  }
}

/** What the keys of such a service begin with on the server. */
export function keyPrefixOf({ namespace }: LockServiceOptions): string {
  return namespace === undefined ? '' : `${namespace}:`;
}

function assertParts({ label, observers, orderWarnings, clock }: LockServiceOptions): void {
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
