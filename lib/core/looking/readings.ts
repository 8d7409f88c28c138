import { claimOf, shareProperty } from '../contract/claim.js';
import { isLockError, LockConfigurationError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import type { KeyHolder, KeyWaiter, LeaseState } from '../contract/key-state.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { runOutsideLocks } from '../holding/call-tree.js';
import type { Holds } from '../holding/holds.js';
import type { ServiceContext } from '../holding/service-context.js';
import { hasSessions } from '../leasing/lease.js';
import { whileAwaited } from '../kit/awaited-promises.js';
import { HAND_OFF_BITS } from '../options/hand-off-options.js';

/** @throws LockConfigurationError when the backend cannot tell who has a key */
export function assertCanLook({ backend }: ServiceContext, key: string): void {
  if (!backend.store.look) throw createRefusal(`${backend.name} cannot tell who holds a key`, key);
}

/** Reads the state of a key, see `LockService.look`. Observers hear of a failure. @param key with the namespace */
export async function look(service: ServiceContext, key: string): Promise<LeaseState> {
  assertCanLook(service, key);
  const state = await ask(service, key, 'read the holder of', async (store) => (await store.look?.(key)) ?? {});
  const { holder, holders, waiters } = state;
  return {
    ...(holder ? { holder: describe(holder) } : {}),
    ...(holders ? { holders: holders.map(describe) } : {}),
    ...(waiters ? { waiters: waiters.map(describe) } : {}),
  };
}

/** Returns a holder or waiter as users see it: with its share, and the token of the first caller with its lease. */
function describe<Claimant extends KeyHolder | KeyWaiter>(claimant: Claimant): Claimant {
  const token = 'fencingToken' in claimant ? claimant.fencingToken : undefined;
  return {
    ...claimant,
    ...(token === undefined ? {} : { fencingToken: token << HAND_OFF_BITS }),
    ...shareProperty(claimOf(claimant.owner)),
  };
}

/** Returns the holder's own description. `undefined`: the key is free, or its holder did not describe itself. */
export async function currentHolder(service: ServiceContext, key: string): Promise<Holder | undefined> {
  const { host, pid, label, since } = (await look(service, key)).holder ?? {};
  if (host === undefined || pid === undefined) return undefined;
  return { host, pid, ...(label === undefined ? {} : { label }), ...(since ? { since } : {}) };
}

/** Takes a key from its holders, see `LockService.evict`. Holders of this service are told by no server. */
export async function evict(
  { service, holds }: { readonly service: ServiceContext; readonly holds: Holds },
  key: string,
  owner?: string,
): Promise<KeyHolder | undefined> {
  const { holder, holders = holder ? [holder] : [] } = await look(service, key);
  const evicted: KeyHolder[] = [];
  for (const present of holders) {
    if (owner !== undefined && owner !== present.owner) continue;
    const isEvicted = await ask(service, key, 'evict the holder of', async (store) => {
      if (store.evict) return store.evict(key, present.owner);
      if (!hasSessions(store)) return store.release(key, present.owner);
      throw createRefusal(`${store.name} cannot take a key from its holder`, key);
    });
    if (isEvicted) evicted.push(present);
  }
  holds.revokeEvicted(evicted);
  return evicted[0];
}

/** Lists the held keys, see `LockService.keys`. */
export async function* listKeys(service: ServiceContext, prefix: string): AsyncGenerator<string, void, void> {
  const pages = runOutsideLocks(() => service.backend.store.keys?.(prefix)[Symbol.asyncIterator]());
  if (!pages) throw createRefusal(`${service.backend.name} cannot list keys`, '');
  try {
    for (;;) {
      const { done, value: page } = await ask(service, '', 'list the keys', () => pages.next());
      if (done === true) return;
      for (const key of page) yield key.slice(prefix.length);
    }
  } finally {
    await pages.return?.();
  }
}

async function ask<T>(
  { backend, clock, observers, stopSignal }: ServiceContext,
  key: string,
  operation: string,
  question: (store: LeaseStore) => Promise<T>,
): Promise<T> {
  stopSignal.throwIfAborted();
  try {
    const asked = (): Promise<T> => runOutsideLocks(() => question(backend.store));
    return await whileAwaited(() => backend.noteOutcome(key, clock, asked()));
  } catch (error) {
    if (isLockError(error, 'LOCK_CONFIGURATION')) throw error;
    throw observers.notifyFailure(key, operation, error);
  }
}

function createRefusal(why: string, key: string): LockConfigurationError {
  return new LockConfigurationError(`${why}: ask its server, or choose another backend or strategy`, 'backend', key);
}
