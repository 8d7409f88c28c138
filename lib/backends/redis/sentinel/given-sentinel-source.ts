import { duplicateNodeRedis } from '../clients/node-redis.js';
import type { NodeRedisClient, NodeRedisSentinel } from '../clients/node-redis-types.js';
import type { ClientSource } from '../connection/redis-client.js';

/**
 * Returns a source that duplicates the connection to the master. No command for a lock goes through the application's
 * client, which would repeat commands after a failover, and whose pool would change their order.
 */
export function createGivenSentinelSource(sentinel: NodeRedisSentinel): ClientSource {
  const findMasterClient = async (): Promise<NodeRedisClient> => {
    if (!sentinel.isOpen) await sentinel.connect();
    return (await sentinel._execute(false, async (client) => [client] as const))[0];
  };
  return {
    makeClient: async () => duplicateNodeRedis(findMasterClient),
    watchMaster: (_health, onNewMaster) => {
      const onChange = (event: unknown): void => {
        if (Reflect.get(Object(event), 'type') === 'MASTER_CHANGE') onNewMaster();
      };
      sentinel.on('topology-change', onChange);
      return () => sentinel.off('topology-change', onChange);
    },
  };
}
