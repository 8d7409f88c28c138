import { type BackendFactory, LockBackend } from '../../core/index.js';
import { MemcachedLeaseStore } from './lease-store.js';
import { type MemcachedOptions, resolveMemcachedOptions } from './options.js';
import { MemcachedServers } from './servers.js';

export { type MemcachedErrorKind, MemcachedError } from './error.js';
export { type Credentials, type ValueOrGetter } from '../../core/index.js';
export { type MemcachedOptions, type MemcachedProtocol } from './options.js';

/**
 * Locks on memcached, over its text protocol and without a client library. Connects at `start()`, or with the first
 * request. There is no SASL, which needs the binary protocol: use `credentials` (memcached's `-Y`) with `tls`, or a
 * private network.
 *
 * Best-effort: memcached loses all locks in a restart. When its memory is full, a memcached without `-M` also deletes
 * locks that are held. Then only the fencing token protects. Use no proxy: a proxy that outlives a server would bring
 * cas uniques of the old server to the new one.
 * @throws LockConfigurationError
 */
export function memcached(options: MemcachedOptions): BackendFactory {
  const resolvedOptions = resolveMemcachedOptions(options);
  const { prefix, patienceMs } = resolvedOptions;
  return () => new LockBackend(new MemcachedLeaseStore(new MemcachedServers(resolvedOptions), prefix), { patienceMs });
}
