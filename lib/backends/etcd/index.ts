import type { BackendFactory } from '../../core/index.js';
import { EtcdBackend } from './etcd-backend.js';
import { type EtcdOptions, resolveEtcdOptions } from './etcd-options.js';

export { type EtcdCredentials, type EtcdOptions, type EtcdTls } from './etcd-options.js';

/**
 * Locks on etcd 3.4 or newer. Connects when first asked, and needs no client library.
 *
 * `consensus` is what a cluster remembers by its majority: that of a single server is the server, and so its disk.
 *
 * A user of the cluster needs a role with read and write permission on the keys that begin with `lock/`, the prefix.
 *
 * etcd keeps a history of every lock, about 300 bytes for each acquisition, and forgets none of it by itself: without
 * `--auto-compaction-retention` (such as `1h`) its database grows up to its quota, and then it refuses every write of everybody.
 * `health` says so when the database grows beyond four fifths of that.
 *
 * All locks of a process live by one lease, and so have one TTL: `ttlSeconds`. Each heartbeat reads every lock that is held:
 * 10,000 of them cost about 8 % of a core, and 100,000 are too many for one process.
 *
 * Connect to the members themselves, or by a proxy or load balancer that passes HTTP/2 on. etcd's own `grpc-proxy` is none of
 * these: it answers heartbeats and numbers watches by itself, which breaks what locks here rely on.
 * @throws LockConfigurationError
 */
export function etcd(options: EtcdOptions): BackendFactory {
  const resolved = resolveEtcdOptions(options);
  return () => new EtcdBackend(resolved);
}
