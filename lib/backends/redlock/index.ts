import { type BackendFactory, LockBackend } from '../../core/index.js';
import { RedlockLeaseStore } from './lease-store.js';
import { RedlockNode } from './redlock-node.js';
import { ServerIdentities } from './server-identities.js';
import { type RedlockOptions, resolveRedlockOptions } from './options.js';

export { type RedisClient } from '../redis/connection/redis-client.js';
export { type RedlockOptions } from './options.js';

/**
 * Locks on a majority of several independent Redis masters. Connects at `start()`, or with the first request.
 *
 * A user of each server needs only `~redlock:* +eval +evalsha +get +set +del +pttl +pexpire +time +info`.
 * `+info` is optional unless `restartQuarantineMs` is used, and so is `+select` with database 0.
 * @throws LockConfigurationError
 */
export function redlock(options: RedlockOptions): BackendFactory {
  const { nodes, settings } = resolveRedlockOptions(options);
  return () => {
    const identities = new ServerIdentities(settings.prefix);
    const redlockNodes = nodes
      .map(({ name, source }) => new RedlockNode(name, source, settings, identities))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return new LockBackend(new RedlockLeaseStore(redlockNodes, settings));
  };
}
