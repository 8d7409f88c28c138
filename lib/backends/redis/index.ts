import { randomUUID } from 'node:crypto';
import { type BackendFactory, type LeaseStore, LockBackend, WakeUps } from '../../core/index.js';
import { givenSource, urlSource } from './connection/client-source.js';
import { ClusterWakeUpChannels } from './cluster/cluster-wake-up-channels.js';
import { ClusterConnection } from './cluster/cluster-connection.js';
import { ClusterNodes } from './cluster/cluster-nodes.js';
import { type ClusterSource, clusterSource, givenClusterSource } from './cluster/cluster-source.js';
import { GetsetLeaseStore } from './getset/lease-store.js';
import { WakeUpChannel, type WakeUpChannels } from './queue/wake-up-channel.js';
import { PlainLeaseStore } from './plain/lease-store.js';
import { QueueLeaseStore } from './queue/lease-store.js';
import type { ClientSource, RedisClient, RedisCluster } from './connection/redis-client.js';
import { RedisConnection } from './connection/redis-connection.js';
import { asList } from './scripts/redis-reply.js';
import { type RedisOptions, type ResolvedRedisOptions, resolveRedisOptions } from './options.js';
import type { RedisServers } from './connection/redis-servers.js';
import { ReplicaCheck } from './connection/replica-check.js';
import { sentinelSource } from './sentinel/sentinel-source.js';

export { type RedisClient, type RedisCluster } from './connection/redis-client.js';
export {
  type RedisAccessOptions,
  type RedisClusterOptions,
  type RedisAddress,
  type RedisCredentials,
  type RedisMode,
  type RedisOptions,
  type RedisSentinelOptions,
} from './options.js';
export { type RedisTls } from './connection/tls-options.js';

/**
 * Locks on one Redis server (or Valkey, or another server that speaks its protocol), on the master that Sentinels agree on, or
 * on a Cluster (7.0 or newer; with an older one waiters poll). Connects at the start of the service, or at the first question.
 *
 * Up to 500 commands are under way at a time. Others wait in this process, renewals and releases first. An acquisition
 * that its caller has abandoned is never sent.
 *
 * A user of the server needs no more than
 * `~lock:* &lock:* +eval +evalsha +get +set +del +pttl +pexpire +time +publish +pubsub|numsub +subscribe +unsubscribe +lindex +lpos +lrem +rpush +hget +hset +hdel +info`;
 * `getset` needs `~lock:* +get +setnx +getset +del +time +info`. `+info` may be left out; so may `+select` with database 0.
 * @throws LockConfigurationError
 */
export function redis(options: RedisOptions): BackendFactory {
  const resolved = resolveRedisOptions(options);
  return () => open(resolved);
}

function open(resolved: ResolvedRedisOptions): LockBackend {
  const { mode, prefix, requestTimeoutMs, patienceMs, minReplicas } = resolved;
  const replicas = new ReplicaCheck(minReplicas, Math.ceil(requestTimeoutMs / 4));
  const { servers, channels } = connect(resolved);
  const queue = (): LeaseStore => {
    const wakeUps = new WakeUps();
    return new QueueLeaseStore(servers, replicas, prefix, channels(wakeUps), wakeUps);
  };
  const stores: Record<typeof mode, () => LeaseStore> = {
    queue,
    plain: () => new PlainLeaseStore(servers, replicas, prefix),
    getset: () => new GetsetLeaseStore(servers, replicas, prefix, requestTimeoutMs),
  };
  return new LockBackend(stores[mode](), { patienceMs });
}

interface Installation {
  readonly servers: RedisServers;
  readonly channels: (wakeUps: WakeUps) => WakeUpChannels;
}

function connect(options: ResolvedRedisOptions): Installation {
  if (options.url !== undefined) return oneServer(urlSource(options.url), options);
  if (options.sentinels) return oneServer(sentinelSource(options), options);
  if (options.cluster) return manyServers(clusterSource(options), options);
  const { client } = options;
  return isCluster(client) ? manyServers(givenClusterSource(client), options) : oneServer(givenSource(client), options);
}

function oneServer(source: ClientSource, { prefix, requestTimeoutMs }: ResolvedRedisOptions): Installation {
  const servers = new RedisConnection(source, requestTimeoutMs);
  const name = `${prefix}:${randomUUID()}`;
  const { health } = servers;
  const countListeners = async (): Promise<number> => {
    const [, listeners] = asList(await servers.send('PUBSUB', 'NUMSUB', name));
    return Number(listeners);
  };
  const timeoutMs = requestTimeoutMs;
  return {
    servers,
    channels: (wakeUps) => new WakeUpChannel({ source, name, wakeUps, timeoutMs, countListeners, health }),
  };
}

function manyServers(source: ClusterSource, { prefix, requestTimeoutMs }: ResolvedRedisOptions): Installation {
  const nodes = new ClusterNodes(source, requestTimeoutMs);
  return {
    servers: new ClusterConnection(nodes, source.keyPrefix, requestTimeoutMs),
    channels: (wakeUps) => new ClusterWakeUpChannels(nodes, source, prefix, wakeUps, requestTimeoutMs),
  };
}

function isCluster(client: RedisClient | RedisCluster): client is RedisCluster {
  return client.isCluster;
}
