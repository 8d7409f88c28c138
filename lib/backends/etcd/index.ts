import { type BackendFactory, LockBackend } from '../../core/index.js';
import { EtcdLeaseStore } from './lease-store.js';
import { type EtcdOptions, resolveEtcdOptions } from './options.js';

export { type Credentials, type Given } from '../../core/index.js';
export { type EtcdOptions, type EtcdTls } from './options.js';

/** By chance up to half more or less. A look also finds a connection that the network has forgotten. */
const LOOK_AGAIN_MS = 3_000;

/**
 * Locks on etcd 3.4 or newer. Connects when first asked, and needs no client library.
 *
 * `consensus` is the memory of a majority of the cluster. For a single server that is its disk.
 *
 * A user of the cluster needs a role with read and write permission on the keys that begin with `lock/`, the prefix.
 *
 * etcd keeps a history of every lock, about 300 bytes for each acquisition, and forgets none of it by itself. Without
 * `--auto-compaction-retention` (such as `1h`) its database grows up to its quota. Then it refuses every write of
 * everybody. `health` warns when the database grows beyond four fifths of the quota.
 *
 * All locks of a process share one lease, and one TTL: `sessionTtlMs`. Each heartbeat reads every lock that is held:
 * 10,000 of them cost about 8 % of a core, and 100,000 are too many for one process.
 *
 * Connect to the members themselves, or by a proxy or load balancer that passes HTTP/2 on. etcd's own `grpc-proxy` does
 * not serve: it answers heartbeats and numbers watches by itself, which breaks these locks.
 * @throws LockConfigurationError
 */
export function etcd(options: EtcdOptions): BackendFactory {
  const resolved = resolveEtcdOptions(options);
  const polling = { pollMs: LOOK_AGAIN_MS, patienceMs: resolved.patienceMs };
  return () => new LockBackend(new EtcdLeaseStore(resolved), polling);
}
