import { claimFor, covers, describeClaim } from '../contract/claim.js';
import { LockConfigurationError, quote } from '../contract/errors.js';
import { assertKey } from '../contract/key.js';
import { assertOptions, isObject } from '../kit/option-checks.js';
import type { AcquireOptions, ResolvedOptions, TryAcquireOptions } from '../options/lock-options.js';

/** Key with the claim to it. Without a claim the options of the call count. */
export interface KeyClaim extends Pick<TryAcquireOptions, 'mode' | 'limit' | 'permits'> {
  readonly key: string;
}

/** Key as a caller of several writes it. */
export type WantedKey = string | KeyClaim;

/** Key that was checked, with all options of its acquisition. */
export interface ResolvedKey {
  readonly key: string;
  readonly options: Readonly<ResolvedOptions>;
}

type Resolve = (options?: AcquireOptions) => Readonly<ResolvedOptions>;

/** Returns each key once, in the one order in which all callers wait for them. @throws LockConfigurationError */
export function resolveKeys(
  keys: readonly WantedKey[],
  options: AcquireOptions | undefined,
  resolve: Resolve,
): readonly ResolvedKey[] {
  const input: unknown = keys;
  if (!Array.isArray(input) || input.length === 0) {
    throw new LockConfigurationError('several locks need a list of one key or more', 'keys');
  }
  const common = resolve(options);
  const wanted = new Map<string, ResolvedKey[]>();
  for (const each of keys) {
    const one = typeof each === 'string' ? { key: each, options: common } : resolveClaim(each, common, resolve);
    assertKey(one.key);
    const same = wanted.get(one.key);
    if (same) same.push(one);
    else wanted.set(one.key, [one]);
  }
  const sorted = [...wanted.keys()].toSorted();
  return sorted.map((key) => strongestClaim(key, wanted.get(key) ?? []));
}

function resolveClaim(keyClaim: KeyClaim, common: Readonly<ResolvedOptions>, resolve: Resolve): ResolvedKey {
  if (!isObject(keyClaim) || Array.isArray(keyClaim)) assertKey(keyClaim);
  assertOptions(keyClaim, ['key', 'mode', 'limit', 'permits'], 'key');
  const { key, mode, limit, permits } = keyClaim;
  if (mode === undefined && limit === undefined && permits === undefined) return { key, options: common };
  const { limit: _limit, permits: _permits, ...rest } = common;
  const claim = {
    mode: mode ?? ('exclusive' as const),
    ...(limit !== undefined && { limit }),
    ...(permits !== undefined && { permits }),
  };
  return { key, options: resolve({ ...rest, ...claim }) };
}

/**
 * Returns the strongest of the claims to a key that came more than once. The key is then taken once: a transfer from an
 * account to itself must not fail.
 */
function strongestClaim(key: string, wanted: readonly ResolvedKey[]): ResolvedKey {
  const claims = wanted.map(({ options }) => claimFor(options));
  const found = wanted.find(({ options }) => claims.every((claim) => covers(claimFor(options), claim)));
  if (found) return found;
  const asked = [...new Set(claims.map(describeClaim))].join(' and ');
  throw new LockConfigurationError(
    `${quote(key)} is wanted ${asked} in one call, and none of these covers the others: give it once, with what the work needs`,
    'keys',
    key,
  );
}
