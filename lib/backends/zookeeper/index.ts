import { type BackendFactory, LockBackend } from '../../core/index.js';
import { ZooKeeperLeaseStore } from './lease-store.js';
import { resolveZooKeeperOptions, type ZooKeeperOptions } from './options.js';

export { type Credentials } from '../../core/index.js';
export { type ZooKeeperAcl, type ZooKeeperMode, type ZooKeeperOptions } from './options.js';

/** Give or take half. A waiter that is not told of a release looks by itself within five seconds. */
const LOOK_AGAIN_MS = 3_300;

/**
 * Locks on a ZooKeeper (3.5.3 or newer), one server or an ensemble. Connects when first asked. One session holds all
 * keys of this backend: its time-out is the TTL of all of them, whatever a call's `ttlMs` says. Where keys need
 * different TTLs, use one lock service for each.
 * @throws LockConfigurationError
 */
export function zookeeper(options: ZooKeeperOptions): BackendFactory {
  const resolved = resolveZooKeeperOptions(options);
  const polling = { pollMs: LOOK_AGAIN_MS, patienceMs: resolved.patienceMs };
  return () => new LockBackend(new ZooKeeperLeaseStore(resolved), polling);
}
