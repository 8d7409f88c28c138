import { type BackendFactory, LockBackend } from '../../core/index.js';
import { EtcdLeaseStore } from './lease-store.js';
import { type EtcdOptions, resolveEtcdOptions } from './options.js';

export { type Credentials, type ValueOrGetter } from '../../core/index.js';
export { type EtcdOptions, type EtcdTls } from './options.js';

/** Average milliseconds between two polls of a waiter. A poll also finds a connection that the network has dropped. */
const POLL_MS = 3_000;

/**
 * Locks on etcd 3.4 or newer. Connects at `start()` or with the first request, and needs no client
 * library.
 *
 * Its guarantee is `consensus`: a majority of the members stores each grant. A single server stores it on disk.
 *
 * A user of the cluster needs a role with read and write permission on the keys that begin with `lock/`, the prefix.
 *
 * etcd keeps a history of every lock, about 300 bytes for each acquisition, and deletes none of it by itself. Without
 * `--auto-compaction-retention` (such as `1h`) its database grows up to its quota. Then etcd refuses every write of
 * every client. `health` warns when the database exceeds four fifths of the quota.
 *
 * All locks of a process share one lease, and one TTL: `sessionTtlMs`. Each heartbeat reads every lock that is held:
 * 10,000 of them cost about 8 % of a core, and 100,000 are too many for one process.
 *
 * Connect to the members themselves, or through a proxy or load balancer that forwards HTTP/2. etcd's own `grpc-proxy`
 * does not work: it answers heartbeats and numbers watches by itself, which breaks these locks.
 * @throws LockConfigurationError
 */
export function etcd(options: EtcdOptions): BackendFactory {
  const resolved = resolveEtcdOptions(options);
  const polling = { pollMs: POLL_MS, patienceMs: resolved.patienceMs };
  return () => new LockBackend(new EtcdLeaseStore(resolved), polling);
}
