import { duplicateNodeRedis } from '../clients/node-redis.js';
import type { NodeRedisClient, NodeRedisCluster, NodeRedisClusterNode } from '../clients/node-redis-types.js';
import type { NatMap } from '../connection/redis-client.js';
import { type ClusterSource, translateAddress } from './cluster-source.js';

/** Returns a source that duplicates connections of the cluster client. No command for a lock uses that client. */
export function createGivenNodeRedisClusterSource(cluster: NodeRedisCluster): ClusterSource {
  const loadNodes = async (): Promise<[NodeRedisClusterNode, ...NodeRedisClusterNode[]]> => {
    if (!cluster.isOpen) await cluster.connect();
    const [firstNode, ...otherNodes] = [...cluster.masters, ...cluster.replicas];
    if (!firstNode) throw new Error('the given cluster is not connected');
    return [firstNode, ...otherNodes];
  };
  const findClientToDuplicate = async (): Promise<NodeRedisClient> => {
    const nodes = await loadNodes();
    const connectedNode = nodes.find(({ client }) => client);
    return connectedNode?.client ?? cluster.nodeClient(nodes[0]);
  };
  return {
    keyPrefix: '',
    loadSeedAddresses: async () => (await loadNodes()).map(({ address }) => address),
    // If the slots are outdated, this command fails, and the cluster client of node-redis then loads the slots anew.
    refreshApplicationClient: () => cluster.sendCommand(undefined, true, ['PING']),
    createClientSource: (address) => ({
      makeClient: async () =>
        duplicateNodeRedis(findClientToDuplicate, translateAddress(address, getNodeAddressMap(cluster))),
    }),
  };
}

function getNodeAddressMap(cluster: NodeRedisCluster): NatMap | undefined {
  const options: unknown = Reflect.get(cluster, '_options');
  return Reflect.get(Object(options), 'nodeAddressMap');
}
