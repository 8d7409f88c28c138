import { type BackendFactory, LockBackend } from '../../core/index.js';
import { EtcdLeaseStore } from './lease-store.js';
import { type EtcdOptions, resolveEtcdOptions } from './options.js';

export { type Credentials, type Given } from '../../core/index.js';
export { type EtcdOptions, type EtcdTls } from './options.js';

/**
 * Give or take half. Should a wake-up be missing: nobody hears from a connection that the network has forgotten, and
 * looking shows that, too.
 */
const LOOK_AGAIN_MS = 3_000;

/**
 * Locks on etcd 3.4 or newer. Connects when first asked, and needs no client library.
 *
 * `consensus` is what a cluster remembers by its majority: that of a single server is the server, and so its disk.
 *
 * A user of the cluster needs a role with read and write permission on the keys that begin with `lock/`, the prefix.
 *
 * etcd keeps a history of every lock, about 300 bytes for each acquisition, and forgets none of it by itself: without
 * `--auto-compaction-retention` (such as `1h`) its database grows up to its quota, and then it refuses every write of
 * everybody. `health` says so when the database grows beyond four fifths of that.
 *
 * All locks of a process live by one lease, and so have one TTL: `sessionTtlMs`. Each heartbeat reads every lock that
 * is held: 10,000 of them cost about 8 % of a core, and 100,000 are too many for one process.
 *
 * Connect to the members themselves, or by a proxy or load balancer that passes HTTP/2 on. etcd's own `grpc-proxy` is
 * none of these: it answers heartbeats and numbers watches by itself, which breaks what locks here rely on.
 * @throws LockConfigurationError
 */
export function etcd(options: EtcdOptions): BackendFactory {
  const resolved = resolveEtcdOptions(options);
  const polling = { pollMs: LOOK_AGAIN_MS, patienceMs: resolved.patienceMs };
  return () => new LockBackend(new EtcdLeaseStore(resolved), polling);
}
