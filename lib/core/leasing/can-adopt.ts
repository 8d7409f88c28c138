import { LockConfigurationError } from '../contract/errors.js';
import type { LeaseStore } from '../contract/lease-store.js';

/** @throws LockConfigurationError */
export function assertCanAdopt(
  store: Pick<LeaseStore, 'name' | 'adopt'>,
  key: string,
): asserts store is LeaseStore & Required<Pick<LeaseStore, 'adopt'>> {
  if (store.adopt) return;
  const reason =
    'they end with the session, the connection or the transaction of their process, or have several servers';
  throw new LockConfigurationError(`locks of ${store.name} cannot be transferred: ${reason}`, 'backend', key);
}
