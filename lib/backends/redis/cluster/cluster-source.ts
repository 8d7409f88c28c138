import { splitAddress } from './cluster-slots.js';
import { makeClient, OWN_CLIENT_OPTIONS, tlsOptions } from '../connection/client-factory.js';
import type { ClientSource, NatMap, RedisCluster } from '../connection/redis-client.js';
import type { RedisClusterOptions } from '../options.js';

const REDIS_PORT = 6_379;

/** Makes the connections to the nodes of a cluster. */
export interface ClusterSource {
  /** Put before every key, it decides on the slot. */
  readonly keyPrefix: string;
  /** `host:port` of nodes that know the others. */
  seeds(): Promise<readonly string[]>;
  /** @param address `host:port`, as the cluster knows it */
  at(address: string): ClientSource;
}

export function clusterSource({ cluster, credentials, tls, natMap }: RedisClusterOptions): ClusterSource {
  return {
    keyPrefix: '',
    seeds: async () => cluster.map(({ host, port = REDIS_PORT }) => `${host}:${port}`),
    at: (address) => ({
      open: () => makeClient({ ...located(address, natMap), ...credentials, tls: tlsOptions(tls) }, 'cluster'),
    }),
  };
}

/** Connections like those of a `Cluster` that was given, which itself is only asked for its nodes. */
export function givenClusterSource(given: RedisCluster): ClusterSource {
  const { keyPrefix = '', natMap } = given.options;
  return {
    keyPrefix,
    seeds: async () => {
      if (given.status === 'wait') await given.connect();
      return given.nodes('all').map(({ options: { host, port } }) => `${host}:${port}`);
    },
    at: (address) => {
      const make = (prefix: string) => async () => {
        const [model] = given.nodes('all');
        if (!model) throw new Error('the given Cluster is not connected');
        const own = { ...OWN_CLIENT_OPTIONS, readOnly: false, keyPrefix: prefix, ...located(address, natMap) };
        return model.duplicate(own);
      };
      // A sharded channel would get the prefix too, but not where a script publishes.
      return { open: make(keyPrefix), openSubscriber: make('') };
    },
  };
}

function located(address: string, natMap: NatMap | null | undefined): ReturnType<typeof splitAddress> {
  const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
  return mapped ?? splitAddress(address);
}
