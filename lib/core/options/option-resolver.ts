import { LockConfigurationError } from '../contract/errors.js';
import type { LeaseStore, StoreTraits } from '../contract/lease-store.js';
import { refuseOption } from '../kit/option-checks.js';
import {
  type AcquireOptions,
  assertDefaults,
  DEFAULTS,
  MIN_TTL_MS,
  type ResolvedOptions,
  resolveOptions,
} from './lock-options.js';

type StoreProperties = Pick<LeaseStore, 'name' | 'traits'>;

/**
 * @throws LockConfigurationError when `store` does not support the TTL, claim, `minHoldMs` or lock-delay of `options`
 */
export function assertLockIsSupported(options: ResolvedOptions, store: StoreProperties): void {
  const { ttlMs, lockDelayMs, minHoldMs } = options;
  assertTtl(ttlMs, store);
  assertClaimIsSupported(options, store);
  assertMinHoldIsSupported(minHoldMs, store);
  if (lockDelayMs === 0) return;
  const { endsWith, ttlLimits } = store.traits ?? {};
  if (endsWith === 'connection') {
    throw new LockConfigurationError(
      `${store.name} can keep no lock-delay: a holder that crashes ends its connection, and the server frees the key at once`,
      'lockDelayMs',
    );
  }
  const maxMs = (ttlLimits?.maxMs ?? Infinity) - ttlMs;
  if (lockDelayMs > maxMs) {
    refuseOption(
      'lockDelayMs',
      `must be from 0 to ${maxMs} with ${store.name} and a ttlMs of ${ttlMs}; it was ${lockDelayMs}`,
    );
  }
}

function assertClaimIsSupported({ mode, limit }: ResolvedOptions, { name, traits }: StoreProperties): void {
  if (mode === 'exclusive' && limit === undefined) return;
  const option = limit === undefined ? 'mode' : 'limit';
  const maxPermits = traits?.maxPermits;
  if (maxPermits === undefined) {
    throw new LockConfigurationError(
      `${name} keeps one holder a key: take a backend or strategy that keeps several, as "More than one at a time" in the documentation lists them`,
      option,
    );
  }
  if (limit !== undefined && limit > maxPermits) {
    refuseOption('limit', `must be from 1 to ${maxPermits} with ${name}; it was ${limit}`);
  }
}

function assertMinHoldIsSupported(
  minHoldMs: number,
  { name, traits: { endsWith = 'ttl', ttlLimits } = {} }: StoreProperties,
): void {
  if (minHoldMs === 0) return;
  if (endsWith === 'connection') {
    const reason = 'a lock ends with its connection, and the server frees the key at once';
    throw new LockConfigurationError(
      `${name} can keep no minHoldMs: ${reason}; use a backend with leases`,
      'minHoldMs',
    );
  }
  const maxMs = endsWith === 'ttl' ? (ttlLimits?.maxMs ?? Infinity) : Infinity;
  if (minHoldMs > maxMs) refuseOption('minHoldMs', `must be from 0 to ${maxMs} with ${name}; it was ${minHoldMs}`);
}

/** Returns the milliseconds for which a server keeps a lease after its holder has stopped trusting it. */
export function getUntrustedMs(
  { ttlMs, lockDelayMs, minHoldMs }: ResolvedOptions,
  { endsWith = 'ttl' }: StoreTraits = {},
): number {
  return endsWith === 'ttl' ? Math.max(lockDelayMs, minHoldMs - ttlMs) : lockDelayMs;
}

/** @throws LockConfigurationError when `ttlMs` is not within the limits of the store */
export function assertTtl(ttlMs: number, { name, traits }: StoreProperties): void {
  const ttlLimits = traits?.ttlLimits;
  if (ttlLimits === undefined || (ttlMs >= ttlLimits.minMs && ttlMs <= ttlLimits.maxMs)) return;
  refuseOption('ttlMs', `must be from ${ttlLimits.minMs} to ${ttlLimits.maxMs} with ${name}; it was ${ttlMs}`);
}

/** @throws LockConfigurationError when the lock-delay is nearly as long as the lease, which may be a session's */
export function assertLockDelay(lockDelayMs: number, leaseMs: number, { name }: Pick<LeaseStore, 'name'>): void {
  if (lockDelayMs === 0 || leaseMs - lockDelayMs >= MIN_TTL_MS) return;
  const maxDelayMs = leaseMs - MIN_TTL_MS;
  refuseOption(
    'lockDelayMs',
    `is a part of a lease of ${name}, and must be at most ${maxDelayMs}; it was ${lockDelayMs}`,
  );
}

export class OptionResolver {
  readonly defaults: Readonly<ResolvedOptions>;
  readonly #reusableOptions = new WeakMap<AcquireOptions, Readonly<ResolvedOptions>>();

  /** @throws LockConfigurationError */
  constructor(
    defaults: AcquireOptions | undefined,
    private readonly store: StoreProperties,
  ) {
    assertDefaults(defaults);
    this.defaults = this.#resolve(defaults, DEFAULTS);
  }

  /** Returns options that are checked only once, if later calls pass this result as their options. */
  resolveForReuse(options?: AcquireOptions): Readonly<ResolvedOptions> {
    const resolvedOptions = Object.freeze({ ...this.resolveForCall(options) });
    this.#reusableOptions.set(resolvedOptions, resolvedOptions);
    return resolvedOptions;
  }

  resolveForCall(options?: AcquireOptions): Readonly<ResolvedOptions> {
    if (options === undefined) return this.defaults;
    return this.#reusableOptions.get(options) ?? this.#resolve(options, this.defaults);
  }

  #resolve(options: AcquireOptions | undefined, defaults: Readonly<ResolvedOptions>): Readonly<ResolvedOptions> {
    const resolvedOptions = resolveOptions(options, defaults);
    assertLockIsSupported(resolvedOptions, this.store);
    return resolvedOptions;
  }
}
