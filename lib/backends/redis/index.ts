import { randomUUID } from 'node:crypto';
import { type BackendFactory, type LeaseStore, LockBackend, WakeUps } from '../../core/index.js';
import { givenSource, hostSource, urlSource } from './connection/client-factory.js';
import { ClusterWakeUpChannels } from './cluster/cluster-wake-up-channels.js';
import { ClusterConnection } from './cluster/cluster-connection.js';
import { ClusterNodes } from './cluster/cluster-nodes.js';
import { type ClusterSource, clusterSource, givenClusterSource } from './cluster/cluster-source.js';
import { GetsetLeaseStore } from './getset/lease-store.js';
import { WakeUpChannel } from './queue/wake-up-channel.js';
import { PlainLeaseStore } from './plain/lease-store.js';
import { QueueLeaseStore } from './queue/lease-store.js';
import type { ClientSource } from './connection/redis-client.js';
import { RedisConnection } from './connection/redis-connection.js';
import { isCluster, type RedisOptions, type ResolvedRedisOptions, resolveRedisOptions } from './options.js';
import { sentinelSource } from './sentinel/sentinel-source.js';

export { type RedisClient, type RedisCluster } from './connection/redis-client.js';
export {
  type RedisAccessOptions,
  type RedisClusterOptions,
  type RedisMode,
  type RedisOptions,
  type RedisSentinelOptions,
} from './options.js';
export {
  type RedisAddress,
  type RedisCredentials,
  type RedisHostOptions,
  type RedisLoginOptions,
  type RedisSecret,
  type RedisTls,
} from './access-options.js';

/**
 * Locks on one Redis server (or Valkey, or another server that speaks its protocol), on the master that Sentinels agree
 * on, or on a Cluster (7.0 or newer; with an older one waiters poll). Connects at the start, or at the first question.
 *
 * Up to 500 commands are under way at a time. Others wait in this process, renewals and releases first. An acquisition
 * that its caller has abandoned is never sent.
 *
 * A user of the server needs no more than
 * `~lock:* &lock:* +eval +evalsha +get +set +del +pttl +pexpire +time +publish +pubsub|numsub +subscribe +unsubscribe +lindex +lpos +lrem +rpush +hget +hset +hdel +info`;
 * `getset` needs `~lock:* +get +setnx +getset +del +time +info`. `+info` is optional, and so are `+select` with database 0 and
 * `+client|id +client|list +client|kill`, by which a former connection is ended; `keys()` needs `+scan`.
 * @throws LockConfigurationError
 */
export function redis(options: RedisOptions): BackendFactory {
  const resolved = resolveRedisOptions(options);
  return () => open(resolved);
}

function open(resolved: ResolvedRedisOptions): LockBackend {
  const { mode, prefix, patienceMs, minReplicas } = resolved;
  const { servers, channels } = connect(resolved);
  const stores: Record<typeof mode, () => LeaseStore> = {
    queue: () => new QueueLeaseStore(servers, prefix, minReplicas, channels()),
    plain: () => new PlainLeaseStore(servers, prefix, minReplicas),
    getset: () => new GetsetLeaseStore(servers, prefix, minReplicas),
  };
  return new LockBackend(stores[mode](), { patienceMs });
}

function connect(options: ResolvedRedisOptions) {
  if (options.url !== undefined) return oneServer(urlSource(options.url, options), options);
  if (options.host !== undefined) return oneServer(hostSource(options), options);
  if (options.sentinels) return oneServer(sentinelSource(options), options);
  if (options.cluster) return manyServers(clusterSource(options), options);
  const { client } = options;
  return isCluster(client) ? manyServers(givenClusterSource(client), options) : oneServer(givenSource(client), options);
}

function oneServer(source: ClientSource, { prefix, requestTimeoutMs }: ResolvedRedisOptions) {
  const servers = new RedisConnection(source, requestTimeoutMs);
  const name = `${prefix}:${randomUUID()}`;
  return { servers, channels: () => new WakeUpChannel(servers, name, new WakeUps(), false) };
}

function manyServers(source: ClusterSource, { prefix, requestTimeoutMs }: ResolvedRedisOptions) {
  const nodes = new ClusterNodes(source, requestTimeoutMs);
  const servers = new ClusterConnection(nodes, requestTimeoutMs);
  return { servers, channels: () => new ClusterWakeUpChannels(nodes, prefix) };
}
