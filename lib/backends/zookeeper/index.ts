import type { BackendFactory } from '../../core/index.js';
import { ZooKeeperBackend } from './zookeeper-backend.js';
import { resolveZooKeeperOptions, type ZooKeeperOptions } from './zookeeper-options.js';

export { type ZooKeeperAcl, type ZooKeeperMode, type ZooKeeperOptions } from './zookeeper-options.js';

/**
 * Locks on a ZooKeeper (3.5.3 or newer), one server or an ensemble. Connects when first asked. One session holds all keys of
 * this backend: its time-out is the TTL of all of them, whatever a call's `ttlMs` says. Where keys need different TTLs, use one
 * lock service for each.
 * @throws LockConfigurationError
 */
export function zookeeper(options: ZooKeeperOptions): BackendFactory {
  const resolved = resolveZooKeeperOptions(options);
  return () => new ZooKeeperBackend(resolved);
}
