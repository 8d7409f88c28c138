import { type BackendFactory, LockBackend } from '../../core/index.js';
import { ZooKeeperLeaseStore } from './lease-store.js';
import { resolveZooKeeperOptions, type ZooKeeperOptions } from './options.js';

export { type Credentials } from '../../core/index.js';
export { type ZooKeeperAcl, type ZooKeeperMode, type ZooKeeperOptions } from './options.js';

/**
 * Average milliseconds between two polls, varied by up to half: a waiter that misses a release polls within five
 * seconds.
 */
const POLL_MS = 3_300;

/**
 * Locks on ZooKeeper 3.5.3 or newer, one server or an ensemble. Connects at `start()` or with the first
 * request. One session holds all keys of this backend: its time-out is their TTL, whatever `ttlMs` a call requests. Use
 * one lock service for each TTL.
 * @throws LockConfigurationError
 */
export function zookeeper(options: ZooKeeperOptions): BackendFactory {
  const resolved = resolveZooKeeperOptions(options);
  const polling = { pollMs: POLL_MS, patienceMs: resolved.patienceMs };
  return () => new LockBackend(new ZooKeeperLeaseStore(resolved), polling);
}
