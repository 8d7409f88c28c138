import { parseClaim, shareProperty } from '../contract/claim.js';
import { isLockError, LockConfigurationError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import type { KeyHolder, KeyWaiter, LeaseState } from '../contract/key-state.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { runOutsideLocks } from '../holding/call-tree.js';
import type { Holds } from '../holding/holds.js';
import type { ServiceContext } from '../holding/service-context.js';
import { hasSessions } from '../leasing/lease.js';
import { withKeepAlive } from '../kit/keep-alive.js';
import { HAND_OFF_BITS } from '../options/hand-off-options.js';

/** @throws LockConfigurationError when the store cannot read who holds a key */
export function assertCanReadHolder({ backend }: ServiceContext, key: string): void {
  if (!backend.store.look) throw createUnsupportedError(`${backend.name} cannot tell who holds a key`, key);
}

/** @param key with the namespace */
export async function readKeyState(service: ServiceContext, key: string): Promise<LeaseState> {
  assertCanReadHolder(service, key);
  const state = await askStore(service, key, 'read the holder of', async (store) => (await store.look?.(key)) ?? {});
  const { holder, holders, waiters } = state;
  return {
    ...(holder ? { holder: withShareAndToken(holder) } : {}),
    ...(holders ? { holders: holders.map(withShareAndToken) } : {}),
    ...(waiters ? { waiters: waiters.map(withShareAndToken) } : {}),
  };
}

/** Adds the share, and appends the hand-off bits of a lease's first caller to the fencing token: all of them are 0. */
function withShareAndToken<Claimant extends KeyHolder | KeyWaiter>(claimant: Claimant): Claimant {
  const token = 'fencingToken' in claimant ? claimant.fencingToken : undefined;
  return {
    ...claimant,
    ...(token === undefined ? {} : { fencingToken: token << HAND_OFF_BITS }),
    ...shareProperty(parseClaim(claimant.owner)),
  };
}

/**
 * Resolves to the description of the holder, or to `undefined` if the key is free or the holder left no description.
 */
export async function readHolder(service: ServiceContext, key: string): Promise<Holder | undefined> {
  const { host, pid, label, since } = (await readKeyState(service, key)).holder ?? {};
  if (host === undefined || pid === undefined) return undefined;
  return { host, pid, ...(label === undefined ? {} : { label }), ...(since ? { since } : {}) };
}

export async function evictHolders(
  { service, holds }: { readonly service: ServiceContext; readonly holds: Holds },
  key: string,
  owner?: string,
): Promise<KeyHolder | undefined> {
  const { holder, holders = holder ? [holder] : [] } = await readKeyState(service, key);
  let evictedHolder: KeyHolder | undefined;
  for (const candidate of holders) {
    if (owner !== undefined && owner !== candidate.owner) continue;
    const isEvicted = await askStore(service, key, 'evict the holder of', async (store) => {
      if (store.evict) return store.evict(key, candidate.owner);
      if (!hasSessions(store)) return store.release(key, candidate.owner);
      throw createUnsupportedError(`${store.name} cannot take a key from its holder`, key);
    });
    if (!isEvicted) continue;
    holds.revokeLeaseOf(candidate.owner);
    evictedHolder ??= candidate;
  }
  return evictedHolder;
}

export async function* listKeys(service: ServiceContext, prefix: string): AsyncGenerator<string, void, void> {
  const pageIterator = runOutsideLocks(() => service.backend.store.keys?.(prefix)[Symbol.asyncIterator]());
  if (!pageIterator) throw createUnsupportedError(`${service.backend.name} cannot list keys`, '');
  try {
    for (;;) {
      const { done, value: page } = await askStore(service, '', 'list the keys', () => pageIterator.next());
      if (done === true) return;
      for (const key of page) yield key.slice(prefix.length);
    }
  } finally {
    await pageIterator.return?.();
  }
}

async function askStore<T>(
  { backend, clock, observers, stopSignal }: ServiceContext,
  key: string,
  operation: string,
  request: (store: LeaseStore) => Promise<T>,
): Promise<T> {
  stopSignal.throwIfAborted();
  try {
    const sendRequest = (): Promise<T> => runOutsideLocks(() => request(backend.store));
    return await withKeepAlive(() => backend.awaitAndCountOutcome(key, clock, sendRequest()));
  } catch (error) {
    if (isLockError(error, 'LOCK_CONFIGURATION')) throw error;
    throw observers.notifyFailure(key, operation, error);
  }
}

function createUnsupportedError(limitation: string, key: string): LockConfigurationError {
  return new LockConfigurationError(
    `${limitation}: ask its server, or choose another backend or strategy`,
    'backend',
    key,
  );
}
