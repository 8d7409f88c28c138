import { refuseOption, shownOption } from '../../../core/index.js';
import type { RedisClient, RedisCluster } from '../connection/redis-client.js';
import {
  isNodeRedisClient,
  isNodeRedisCluster,
  isNodeRedisPool,
  isNodeRedisSentinel,
  type NodeRedisClient,
  type NodeRedisCluster,
  type NodeRedisOptions,
  type NodeRedisSentinel,
} from './node-redis-types.js';

/** A client that the application has made, and passes in the option `client`. */
export type GivenClient = RedisClient | RedisCluster | NodeRedisClient | NodeRedisCluster | NodeRedisSentinel;

const IOREDIS_METHODS = ['call', 'duplicate', 'connect', 'disconnect', 'on', 'off'];
const IOREDIS_CLUSTER_METHODS = ['connect', 'call', 'nodes'];

export function assertClient(client: unknown): void {
  if (isNodeRedisPool(client))
    refuseOption('client', 'must not be a pool, whose commands overtake each other: give a client of createClient()');
  if (isNodeRedis(client)) return;
  const missingNames = findMissingMethods(client, isIoredisCluster(client) ? IOREDIS_CLUSTER_METHODS : IOREDIS_METHODS);
  if (missingNames.length === 0) return;
  const problem = Object(client) === client ? `has no ${missingNames.join(', ')}` : `was ${shownOption(client)}`;
  refuseOption('client', `must be a client of ioredis or of redis, version 5 or 6; it ${problem}`);
}

export function isSingleServerClient(client: unknown): client is RedisClient | NodeRedisClient {
  if (isNodeRedis(client)) return isNodeRedisClient(client);
  return !isIoredisCluster(client) && findMissingMethods(client, IOREDIS_METHODS).length === 0;
}

function isNodeRedis(client: unknown): client is NodeRedisClient | NodeRedisCluster | NodeRedisSentinel {
  return isNodeRedisClient(client) || isNodeRedisCluster(client) || isNodeRedisSentinel(client);
}

/** Returns whether the client finds the new master after a failover: it has several servers, or asks Sentinels. */
export function followsFailovers(client: unknown): boolean {
  const options: Partial<Record<string, unknown>> = Object(Reflect.get(Object(client), 'options'));
  return hasSeveralServers(client) || Array.isArray(options.sentinels);
}

function hasSeveralServers(client: unknown): boolean {
  return isIoredisCluster(client) || isNodeRedisCluster(client) || isNodeRedisSentinel(client);
}

export function isIoredisCluster(client: unknown): client is RedisCluster {
  return Reflect.get(Object(client), 'isCluster') === true;
}

function findMissingMethods(client: unknown, methods: readonly string[]): readonly string[] {
  return methods.filter((name) => typeof Reflect.get(Object(client), name) !== 'function');
}

/**
 * Accepts only a client that sends a command at once or never. In mode `getset` a late command could change the lease
 * of another owner, because it does not compare owners. Accepts all clients of several servers, because the backend
 * makes its own connections to these servers.
 * @throws LockConfigurationError
 */
export function assertSendsNothingLate(client: unknown): void {
  if (hasSeveralServers(client)) return;
  const options: Partial<Record<string, unknown>> = Object(Reflect.get(Object(client), 'options'));
  const { maySendLate, requiredOptions } = isNodeRedisClient(client)
    ? sendRiskOfNodeRedis(options)
    : sendRiskOfIoredis(options);
  if (!maySendLate) return;
  const remedy = `make it with { ${requiredOptions} }, or give its url`;
  refuseOption('client', `sends commands late, which lets two hold a key in mode 'getset': ${remedy}`);
}

interface SendRisk {
  readonly maySendLate: boolean;
  readonly requiredOptions: string;
}

function sendRiskOfIoredis(options: Partial<Record<string, unknown>>): SendRisk {
  const canResend = options.autoResendUnfulfilledCommands !== false && options.maxRetriesPerRequest !== 0;
  // A command waits in the client until all replies of the automatic pipeline before it are there.
  const mayWaitForPipeline = options.enableAutoPipelining === true;
  return {
    maySendLate: options.enableOfflineQueue !== false || canResend || mayWaitForPipeline,
    requiredOptions: 'enableOfflineQueue: false, maxRetriesPerRequest: 0, enableAutoPipelining: false',
  };
}

/** node-redis queues commands while it is offline, and holds them back during maintenance. */
function sendRiskOfNodeRedis({ disableOfflineQueue, maintNotifications = 'disabled' }: NodeRedisOptions): SendRisk {
  return {
    maySendLate: disableOfflineQueue !== true || maintNotifications !== 'disabled',
    requiredOptions: "disableOfflineQueue: true, maintNotifications: 'disabled'",
  };
}
