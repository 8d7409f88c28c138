import { splitAddress } from './cluster-slots.js';
import { createLoginSource } from '../access-options.js';
import { tlsOptions } from '../clients/client-settings.js';
import { createDuplicateOptions, withConnectionCheck } from '../clients/ioredis.js';
import { type RedisClientPackage, loadClientMaker } from '../clients/own-client.js';
import type { ClientSource, NatMap, RedisCluster } from '../connection/redis-client.js';
import type { RedisClusterOptions } from '../options.js';

const REDIS_PORT = 6_379;

export interface ClusterSource {
  /** Text that clients put before every key, and which counts for the key's slot. */
  readonly keyPrefix: string;
  /** Resolves to `host:port` of some nodes, which know the others. */
  loadSeedAddresses(): Promise<readonly string[]>;
  /** @param address `host:port`, as the cluster knows it */
  createClientSource(address: string): ClientSource;
  /** Makes the application's cluster client load its nodes again, because no known node answers. */
  refreshApplicationClient?(): Promise<unknown>;
}

export function createClusterSource(
  { cluster, credentials, tls, natMap }: RedisClusterOptions,
  clientPackage?: RedisClientPackage,
): ClusterSource {
  const login = createLoginSource('credentials', credentials);
  return {
    keyPrefix: '',
    loadSeedAddresses: async () => cluster.map(({ host, port = REDIS_PORT }) => `${host}:${port}`),
    createClientSource: (address) => {
      const location = { ...translateAddress(address, natMap), tls: tlsOptions(tls) };
      return { makeClient: async () => (await loadClientMaker(clientPackage, 'cluster')).makeClient(location, login) };
    },
  };
}

/** Returns a source that duplicates connections of the `Cluster`. No command for a lock goes through the `Cluster`. */
export function createGivenClusterSource(givenCluster: RedisCluster): ClusterSource {
  const { keyPrefix = '', natMap } = givenCluster.options;
  return {
    keyPrefix,
    loadSeedAddresses: async () => {
      if (givenCluster.status === 'wait') await givenCluster.connect();
      const nodes = givenCluster.nodes('all');
      if (nodes.length === 0)
        throw new Error(`the given Cluster is not connected: its status is "${givenCluster.status}"`);
      return nodes.map(({ options: { host, port } }) => `${host}:${port}`);
    },
    // A Cluster of ioredis loads its slots when a command finds no node.
    refreshApplicationClient: () => givenCluster.call('PING'),
    createClientSource: (address) => {
      const createDuplicator = (prefix: string) => async () => {
        const [node] = givenCluster.nodes('all');
        if (!node) throw new Error('the given Cluster is not connected');
        const location = translateAddress(address, natMap);
        const options = { ...createDuplicateOptions(), readOnly: false, keyPrefix: prefix, ...location };
        return withConnectionCheck(node.duplicate(options));
      };
      // A client with a prefix would subscribe to another channel than the scripts publish to.
      return { makeClient: createDuplicator(keyPrefix), makeSubscriber: createDuplicator('') };
    },
  };
}

export function translateAddress(address: string, natMap: NatMap | null | undefined): ReturnType<typeof splitAddress> {
  const mappedAddress = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
  return mappedAddress ?? splitAddress(address);
}
