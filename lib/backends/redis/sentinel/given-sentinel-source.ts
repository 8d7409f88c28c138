import { duplicateNodeRedis } from '../clients/node-redis.js';
import type { NodeRedisClient, NodeRedisSentinel } from '../clients/node-redis-types.js';
import type { ClientSource } from '../connection/redis-client.js';

/**
 * Returns a source that duplicates the connection to the master. The application's client sends no commands of locks:
 * it would repeat them after a failover, and its pool would change their order.
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
