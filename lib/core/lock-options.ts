import { inspect } from 'node:util';
import { type HandOffOptions, MAX_HAND_OFFS } from './waiting/hand-off-limits.js';
import { LockConfigurationError } from './contract/errors.js';
import type { LeaseStore } from './contract/lease-store.js';
import type { LockObserver } from './events/lock-observer.js';
import type { Clock } from './time/timers.js';

export interface TryAcquireOptions {
  /** How long the key stays locked if this process dies. Sessions have their own. @default 30_000 */
  ttlMs?: number;
  /**
   * How much longer the server keeps the key closed than its holder trusts it: time for what a holder that crashed, or lost the
   * lock, had sent before to arrive. Not after a release. Where a session is the TTL it is a part of that; refused where a lock
   * ends with its holder's connection, which a crash does at once. @default 0
   */
  lockDelayMs?: number;
  /** Renews while held, every `ttlMs / 3`. `false`: the lock ends after `ttlMs`, whatever the work does. @default true */
  watchdog?: boolean;
  /** After this time the lock is lost, so that a hung task cannot keep a key for ever. @default Infinity */
  maxHoldMs?: number;
  /**
   * Whether the same async call tree may take the key again. It then enters the lock that it has, which keeps the options it was
   * taken with: those of an inner call, such as its `ttlMs` and `maxHoldMs`, count only where that call is the outermost.
   * @default true
   */
  reentrant?: boolean;
}

export interface AcquireOptions extends TryAcquireOptions {
  /** `0` never waits, `Infinity` waits for ever. @default 10_000 */
  waitMs?: number;
  /**
   * `false`: `withLock` does not wait for its release, and the turn of the next caller here begins when that is sent.
   * Saves a round trip. The key may then be held for a moment after `withLock` has resolved; a release that fails is told to
   * observers, as always. Where a store does not keep the order of what it is asked, the next turn begins with the answer.
   * @default true
   */
  awaitRelease?: boolean;
  /** Gives up waiting; `acquire` then rejects with `signal.reason`. It does not end a lock that is held. */
  signal?: AbortSignal;
}

export interface LockServiceOptions extends HandOffOptions {
  /** What `acquire`, `tryAcquire` and `withLock` assume where a call does not say. */
  defaults?: AcquireOptions;
  /** Put before every key with a colon, so that applications which share a server do not share locks. */
  namespace?: string;
  /** How this process is named to those who wait for it. @default the host's name */
  label?: string;
  /** How many callers may wait for one key in this process before the next is refused with `LockTimeoutError`. @default 100_000 */
  maxWaiters?: number;
  /**
   * How long `shutdown` waits for the work under locks, in milliseconds. Nobody waits longer for a lock meanwhile. `0` waits for
   * nothing. In an application of Nest it begins before the server waits for its requests. @default 10_000
   */
  shutdownGraceMs?: number;
  observers?: readonly LockObserver[];
  /** For tests. @default the system's monotonic clock */
  clock?: Clock;
}

export type ResolvedOptions = Required<Omit<AcquireOptions, 'signal'>> & Pick<AcquireOptions, 'signal'>;

const DEFAULTS: ResolvedOptions = {
  ttlMs: 30_000,
  waitMs: 10_000,
  lockDelayMs: 0,
  watchdog: true,
  maxHoldMs: Infinity,
  reentrant: true,
  awaitRelease: true,
};

const ACQUIRE_OPTIONS: ReadonlySet<string> = new Set([...Object.keys(DEFAULTS), 'signal']);
const SERVICE_OPTIONS: ReadonlySet<string> = new Set([
  'defaults',
  'namespace',
  'label',
  'maxHandOffs',
  'maxHandOffMs',
  'maxWaiters',
  'shutdownGraceMs',
  'observers',
  'clock',
]);

/** The shortest time to live in which a renewal can be sent, answered and trusted. */
const MIN_TTL_MS = 10;
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
  refuseUnknown(given, ACQUIRE_OPTIONS, 'acquire');
  const {
    ttlMs = defaults.ttlMs,
    waitMs = defaults.waitMs,
    lockDelayMs = defaults.lockDelayMs,
    watchdog = defaults.watchdog,
    maxHoldMs = defaults.maxHoldMs,
    reentrant = defaults.reentrant,
    awaitRelease = defaults.awaitRelease,
    signal = defaults.signal,
  } = given;
  const resolved: ResolvedOptions = { ttlMs, waitMs, lockDelayMs, watchdog, maxHoldMs, reentrant, awaitRelease };
  if (signal !== undefined) resolved.signal = signal;
  inRange('ttlMs', resolved.ttlMs, MIN_TTL_MS, MAX_TTL_MS);
  inRange('lockDelayMs', resolved.lockDelayMs, 0, MAX_TTL_MS - resolved.ttlMs);
  inRange('waitMs', resolved.waitMs, 0, Infinity);
  inRange('maxHoldMs', resolved.maxHoldMs, 1, Infinity);
  isBoolean('watchdog', resolved.watchdog);
  isBoolean('reentrant', resolved.reentrant);
  isBoolean('awaitRelease', resolved.awaitRelease);
  if (resolved.signal !== undefined && !(resolved.signal instanceof AbortSignal)) {
    throw new LockConfigurationError('signal must be an AbortSignal', 'signal');
  }
  return resolved;
}

type LeaseKind = Pick<LeaseStore, 'name' | 'ttlLimits' | 'endsWith'>;

/** @throws LockConfigurationError when `backend` can keep no such lock, with its lock-delay */
export function assertLock({ ttlMs, lockDelayMs }: ResolvedOptions, backend: LeaseKind): void {
  assertTtl(ttlMs, backend);
  if (lockDelayMs === 0) return;
  if (backend.endsWith === 'connection') {
    throw new LockConfigurationError(
      `${backend.name} can keep no lock-delay: a holder that crashes ends its connection, and the server frees the key at once`,
      'lockDelayMs',
    );
  }
  const maxMs = (backend.ttlLimits?.maxMs ?? Infinity) - ttlMs;
  if (lockDelayMs > maxMs) {
    throw new LockConfigurationError(
      `lockDelayMs must be from 0 to ${maxMs} with ${backend.name} and a ttlMs of ${ttlMs}; it was ${lockDelayMs}`,
      'lockDelayMs',
    );
  }
}

/** @throws LockConfigurationError when `backend` cannot keep such a lease */
export function assertTtl(ttlMs: number, { name, ttlLimits }: Pick<LeaseStore, 'name' | 'ttlLimits'>): void {
  if (ttlLimits === undefined || (ttlMs >= ttlLimits.minMs && ttlMs <= ttlLimits.maxMs)) return;
  throw new LockConfigurationError(
    `ttlMs must be from ${ttlLimits.minMs} to ${ttlLimits.maxMs} with ${name}; it was ${ttlMs}`,
    'ttlMs',
  );
}

/** @throws LockConfigurationError when the delay leaves its holder nothing of a lease, which may be a session's */
export function assertLockDelay(lockDelayMs: number, leaseMs: number, { name }: Pick<LeaseStore, 'name'>): void {
  if (lockDelayMs === 0 || leaseMs - lockDelayMs >= MIN_TTL_MS) return;
  throw new LockConfigurationError(
    `lockDelayMs is a part of a lease of ${name}, and must be less than ${leaseMs - MIN_TTL_MS}; it was ${lockDelayMs}`,
    'lockDelayMs',
  );
}

/** @throws LockConfigurationError naming the option, what it was and what it may be */
export function assertServiceOptions(options: LockServiceOptions): void {
  refuseUnknown(options, SERVICE_OPTIONS, 'lock service');
  if (options.maxHandOffs !== undefined) inRange('maxHandOffs', options.maxHandOffs, 0, MAX_HAND_OFFS, 'whole');
  if (options.maxHandOffMs !== undefined) inRange('maxHandOffMs', options.maxHandOffMs, 0, Infinity);
  if (options.maxWaiters !== undefined) inRange('maxWaiters', options.maxWaiters, 0, Infinity);
  if (options.shutdownGraceMs !== undefined) inRange('shutdownGraceMs', options.shutdownGraceMs, 0, Infinity);
  assertParts(options);
  const { namespace } = options;
  if (namespace !== undefined && (typeof namespace !== 'string' || !/^[\w.-]+$/u.test(namespace))) {
    throw new LockConfigurationError(
      `namespace must be letters, digits, "_", "." and "-", because a colon ends it; it was ${JSON.stringify(namespace)}`,
      'namespace',
    );
  }
}

function assertParts({ label, observers, clock }: LockServiceOptions): void {
  if (label !== undefined && (typeof label !== 'string' || label === '' || label.length > MAX_LABEL_LENGTH)) {
    throw new LockConfigurationError(
      `label must be a text of 1 to ${MAX_LABEL_LENGTH} characters; it was ${shown(label)}`,
      'label',
    );
  }
  if (observers !== undefined && !(Array.isArray(observers) && observers.every(isObject))) {
    throw new LockConfigurationError(
      `observers must be a list of objects with methods named after events; it was ${shown(observers)}`,
      'observers',
    );
  }
  if (clock !== undefined && !isClock(clock)) {
    throw new LockConfigurationError(
      `clock must be an object with the methods now and schedule; it was ${shown(clock)}`,
      'clock',
    );
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isClock(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { now, schedule }: { now?: unknown; schedule?: unknown } = value;
  return typeof now === 'function' && typeof schedule === 'function';
}

function shown(value: unknown): string {
  return inspect(value, { depth: 0, maxStringLength: 50, breakLength: Infinity });
}

function inRange(option: string, value: unknown, min: number, max: number, kind: 'whole' | 'any' = 'any'): void {
  const ok = typeof value === 'number' && value >= min && value <= max && (kind === 'any' || Number.isInteger(value));
  if (ok) return;
  const given = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
  const expected = max === Infinity ? `a number from ${min} up, or Infinity` : `a number from ${min} to ${max}`;
  throw new LockConfigurationError(`${option} must be ${expected}; it was ${given}`, option);
}

function isBoolean(option: string, value: unknown): void {
  if (typeof value !== 'boolean') {
    throw new LockConfigurationError(`${option} must be true or false; it was ${JSON.stringify(value)}`, option);
  }
}

function refuseUnknown(given: object, known: ReadonlySet<string>, what: string): void {
  if (given === null || typeof given !== 'object') {
    throw new LockConfigurationError(
      `${what} options must be an object; they were ${JSON.stringify(given)}`,
      'options',
    );
  }
  for (const name of Object.keys(given)) {
    if (!known.has(name)) {
      throw new LockConfigurationError(`${name} is no ${what} option; there are ${[...known].join(', ')}`, name);
    }
  }
}
