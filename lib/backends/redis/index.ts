import { randomUUID } from 'node:crypto';
import { type BackendFactory, type LeaseStore, LockBackend, systemClock, WakeUps } from '../../core/index.js';
import { createGivenClientSource, createHostSource, createUrlSource } from './connection/client-sources.js';
import { ClusterSubscriptions } from './cluster/cluster-subscriptions.js';
import { ClusterConnection } from './cluster/cluster-connection.js';
import { ClusterNodes } from './cluster/cluster-nodes.js';
import { type ClusterSource, createClusterSource, createGivenClusterSource } from './cluster/cluster-source.js';
import { createGivenNodeRedisClusterSource } from './cluster/node-redis-cluster-source.js';
import { GetsetLeaseStore } from './getset/lease-store.js';
import { Subscription } from './connection/subscription.js';
import { PlainLeaseStore } from './plain/lease-store.js';
import { QueueLeaseStore } from './queue/lease-store.js';
import type { ClientSource } from './connection/redis-client.js';
import { RedisConnection } from './connection/redis-connection.js';
import { isNodeRedisCluster, isNodeRedisSentinel } from './clients/node-redis-types.js';
import { isIoredisCluster } from './clients/given-client.js';
import { type RedisOptions, type ResolvedRedisOptions, resolveRedisOptions } from './options.js';
import { createGivenSentinelSource } from './sentinel/given-sentinel-source.js';
import { createSentinelSource } from './sentinel/sentinel-source.js';

export {
  type NodeRedisClient,
  type NodeRedisCluster,
  type NodeRedisClusterNode,
  type NodeRedisOptions,
  type NodeRedisSentinel,
} from './clients/node-redis-types.js';
export { type RedisClientPackage } from './clients/own-client.js';
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
 * Locks on one Redis server, on a master under Sentinel, or on a Cluster. Valkey and other servers with the protocol of
 * Redis work as well. On a Cluster older than 7.0, which has no sharded channels, waiters poll. Connects at `start()`,
 * or with the first request.
 *
 * At most 500 commands are under way at a time. Other commands wait in this process; renewals and releases are sent
 * first. The command of an acquisition that its caller has abandoned is never sent.
 *
 * A user of the server needs only
 * `~lock:* &lock:* +eval +evalsha +get +set +del +pttl +pexpire +time +publish +pubsub|numsub +subscribe +unsubscribe +exists +lindex +lpos +lrem +rpush +hget +hset +hdel +info`,
 * with `&__redis__:invalidate +client|id +client|tracking +client|caching` for `tracking`, and with
 * `+client|getredir` if a `client` is given;
 * `getset` needs `~lock:* +get +setnx +getset +del +time +info`. `+info` is optional, and so are `+select` with database 0 and
 * `+client|id +client|list +client|kill`, by which a replaced connection is ended; `keys()` needs `+scan`.
 * @throws LockConfigurationError
 */
export function redis(options: RedisOptions): BackendFactory {
  const resolvedOptions = resolveRedisOptions(options);
  return () => createBackend(resolvedOptions);
}

function createBackend(options: ResolvedRedisOptions): LockBackend {
  const { mode, patienceMs } = options;
  const { servers, createSubscriptions } = createServers(options);
  const storeFactoryByMode: Record<typeof mode, () => LeaseStore> = {
    queue: () => new QueueLeaseStore(servers, options, createSubscriptions({ wakesWaiters: true })),
    plain: () => new PlainLeaseStore(servers, options, createSubscriptions({ wakesWaiters: false })),
    getset: () => new GetsetLeaseStore(servers, options),
  };
  return new LockBackend(storeFactoryByMode[mode](), { patienceMs });
}

/** Returns the servers, and a function that creates the subscriptions to their messages. */
function createServers(options: ResolvedRedisOptions) {
  const { clientPackage } = options;
  if (options.url !== undefined) return createConnection(createUrlSource(options.url, options, clientPackage), options);
  if (options.host !== undefined) return createConnection(createHostSource(options, clientPackage), options);
  if (options.sentinels) return createConnection(createSentinelSource(options, clientPackage), options);
  if (options.cluster) return createClusterConnection(createClusterSource(options, clientPackage), options);
  const { client } = options;
  if (isIoredisCluster(client)) return createClusterConnection(createGivenClusterSource(client), options);
  if (isNodeRedisCluster(client)) return createClusterConnection(createGivenNodeRedisClusterSource(client), options);
  if (isNodeRedisSentinel(client)) return createConnection(createGivenSentinelSource(client), options);
  return createConnection(createGivenClientSource(client), options);
}

interface SubscriptionSettings {
  /** Whether the subscription has a channel on which waiters are woken. Without one it only reports changed keys. */
  readonly wakesWaiters: boolean;
}

function createConnection(source: ClientSource, { prefix, requestTimeoutMs }: ResolvedRedisOptions) {
  const servers = new RedisConnection(source, requestTimeoutMs, systemClock, { prefix });
  const createSubscriptions = ({ wakesWaiters }: SubscriptionSettings) =>
    new Subscription(servers, wakesWaiters ? `${prefix}:${randomUUID()}` : undefined, new WakeUps(), false);
  return { servers, createSubscriptions };
}

function createClusterConnection(source: ClusterSource, { prefix, requestTimeoutMs }: ResolvedRedisOptions) {
  const nodes = new ClusterNodes(source, requestTimeoutMs);
  const servers = new ClusterConnection(nodes, requestTimeoutMs);
  const createSubscriptions = ({ wakesWaiters }: SubscriptionSettings) =>
    new ClusterSubscriptions(nodes, prefix, wakesWaiters);
  return { servers, createSubscriptions };
}
