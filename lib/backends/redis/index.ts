import { randomUUID } from 'node:crypto';
import { type LeaseStore, type LockBackend, PollingBackend } from '../../core/index.js';
import { GetsetLeaseStore } from './getset-lease-store.js';
import { GrantChannel } from './grant-channel.js';
import { PlainLeaseStore } from './plain-lease-store.js';
import { QueueLeaseStore } from './queue-lease-store.js';
import { sourceOf } from './redis-client.js';
import { RedisConnection } from './redis-connection.js';
import { type RedisOptions, resolveRedisOptions } from './redis-options.js';
import { Waiters } from './waiters.js';

export { type RedisClient, type RedisPipeline } from './redis-client.js';
export { type RedisMode, type RedisOptions } from './redis-options.js';

/**
 * Locks on one Redis server (or Valkey, or what else speaks its protocol). Connects when first asked.
 *
 * A user of the server needs no more than
 * `~lock:* &lock:* +eval +evalsha +get +set +del +pttl +pexpire +time +publish +subscribe +unsubscribe +lindex +lpop +lrange +lrem +rpush +info`;
 * `getset` needs `~lock:* +get +setnx +getset +del +time +info`. `+info` may be left out; so may `+select` with database 0.
 * @throws LockConfigurationError
 */
export function redis(options: RedisOptions): LockBackend {
  const { mode, prefix, commandTimeoutMs, ...where } = resolveRedisOptions(options);
  const source = sourceOf(where);
  const connection = new RedisConnection(source, commandTimeoutMs);
  const queue = (): LeaseStore => {
    const waiters = new Waiters();
    const name = `${prefix}:${randomUUID()}`;
    const channel = new GrantChannel({ source, name, waiters, health: connection.health });
    return new QueueLeaseStore(connection, channel, waiters, prefix);
  };
  const stores: Record<typeof mode, () => LeaseStore> = {
    queue,
    plain: () => new PlainLeaseStore(connection, prefix),
    getset: () => new GetsetLeaseStore(connection, prefix, commandTimeoutMs),
  };
  return new PollingBackend(stores[mode]());
}
