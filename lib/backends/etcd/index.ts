import type { BackendFactory } from '../../core/index.js';
import { EtcdBackend } from './etcd-backend.js';
import { type EtcdOptions, resolveEtcdOptions } from './etcd-options.js';

export { type EtcdOptions, type EtcdTls } from './etcd-options.js';

/**
 * Locks on etcd 3.4 or newer. Connects when first asked, and needs no client library.
 *
 * `consensus` is what a cluster remembers by its majority: that of a single server is the server, and so its disk.
 *
 * A user of the cluster needs a role with read and write permission on the keys that begin with `lock/`, the prefix.
 * @throws LockConfigurationError
 */
export function etcd(options: EtcdOptions): BackendFactory {
  const resolved = resolveEtcdOptions(options);
  return () => new EtcdBackend(resolved);
}
