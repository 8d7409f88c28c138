import { type BackendFactory, LockBackend } from '../../core/index.js';
import { ZooKeeperLeaseStore } from './lease-store.js';
import { resolveZooKeeperOptions, type ZooKeeperOptions } from './options.js';

export { type Credentials } from '../../core/index.js';
export { type ZooKeeperAcl, type ZooKeeperMode, type ZooKeeperOptions } from './options.js';

/** By chance up to half more or less: a waiter that is not told of a release looks by itself within five seconds. */
const LOOK_AGAIN_MS = 3_300;

/**
 * Locks on ZooKeeper 3.5.3 or newer, one server or an ensemble. Connects when first asked. One session holds all keys
 * of this backend: its time-out is their TTL, whatever a call's `ttlMs` says. Use one lock service for each TTL.
 * @throws LockConfigurationError
 */
export function zookeeper(options: ZooKeeperOptions): BackendFactory {
  const resolved = resolveZooKeeperOptions(options);
  const polling = { pollMs: LOOK_AGAIN_MS, patienceMs: resolved.patienceMs };
  return () => new LockBackend(new ZooKeeperLeaseStore(resolved), polling);
}
