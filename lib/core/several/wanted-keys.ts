import { claimOfOptions, covers, describeClaim } from '../contract/claim.js';
import { LockConfigurationError, quote } from '../contract/errors.js';
import { assertKey } from '../contract/key.js';
import { assertOptions, isObject } from '../kit/option-checks.js';
import type { AcquireOptions, ResolvedOptions, TryAcquireOptions } from '../options/lock-options.js';

/** Key with its own claim. A key without one gets the claim of the call's options. */
export interface KeyClaim extends Pick<TryAcquireOptions, 'mode' | 'limit' | 'permits'> {
  readonly key: string;
}

/** Key as a caller of `acquireAll` writes it. */
export type WantedKey = string | KeyClaim;

/** Valid key with all options of its acquisition. */
export interface ResolvedKey {
  readonly key: string;
  readonly options: Readonly<ResolvedOptions>;
}

type ResolveOptions = (options?: AcquireOptions) => Readonly<ResolvedOptions>;

/** Returns each key once, in the order in which all callers have to wait for keys. @throws LockConfigurationError */
export function resolveKeys(
  keys: readonly WantedKey[],
  options: AcquireOptions | undefined,
  resolve: ResolveOptions,
): readonly ResolvedKey[] {
  const uncheckedKeys: unknown = keys;
  if (!Array.isArray(uncheckedKeys) || uncheckedKeys.length === 0) {
    throw new LockConfigurationError('several locks need a list of one key or more', 'keys');
  }
  const commonOptions = resolve(options);
  const claimsByKey = new Map<string, ResolvedKey[]>();
  for (const wantedKey of keys) {
    const resolvedKey =
      typeof wantedKey === 'string'
        ? { key: wantedKey, options: commonOptions }
        : resolveClaim(wantedKey, commonOptions, resolve);
    assertKey(resolvedKey.key);
    const earlierClaims = claimsByKey.get(resolvedKey.key);
    if (earlierClaims) earlierClaims.push(resolvedKey);
    else claimsByKey.set(resolvedKey.key, [resolvedKey]);
  }
  const sortedKeys = [...claimsByKey.keys()].toSorted();
  return sortedKeys.map((key) => findStrongestClaim(key, claimsByKey.get(key) ?? []));
}

function resolveClaim(
  keyClaim: KeyClaim,
  commonOptions: Readonly<ResolvedOptions>,
  resolve: ResolveOptions,
): ResolvedKey {
  // Throws the usual error for a value that is no key.
  if (!isObject(keyClaim) || Array.isArray(keyClaim)) assertKey(keyClaim);
  assertOptions(keyClaim, ['key', 'mode', 'limit', 'permits'], 'key');
  const { key, mode, limit, permits } = keyClaim;
  if (mode === undefined && limit === undefined && permits === undefined) return { key, options: commonOptions };
  const { limit: _limit, permits: _permits, ...otherOptions } = commonOptions;
  const claimOptions = {
    mode: mode ?? ('exclusive' as const),
    ...(limit !== undefined && { limit }),
    ...(permits !== undefined && { permits }),
  };
  return { key, options: resolve({ ...otherOptions, ...claimOptions }) };
}

/**
 * Returns the strongest of several claims to a key. A key may appear more than once, as in a transfer from an account
 * to itself, and is taken once.
 */
function findStrongestClaim(key: string, resolvedKeys: readonly ResolvedKey[]): ResolvedKey {
  const claims = resolvedKeys.map(({ options }) => claimOfOptions(options));
  const strongestClaim = resolvedKeys.find(({ options }) =>
    claims.every((claim) => covers(claimOfOptions(options), claim)),
  );
  if (strongestClaim) return strongestClaim;
  const descriptions = [...new Set(claims.map(describeClaim))].join(' and ');
  throw new LockConfigurationError(
    `${quote(key)} is wanted ${descriptions} in one call, and none of these covers the others: give it once, with what the work needs`,
    'keys',
    key,
  );
}
