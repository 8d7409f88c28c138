import { splitAddress } from './cluster-slots.js';
import { makeNodeClient, OWN_CLIENT_OPTIONS, tlsOptions } from '../connection/client-factory.js';
import { checkingDatabase } from '../connection/ready-check.js';
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
  /** Has a given client look for the nodes anew. Called when none of those that it knows answers. */
  lookAgain?(): void;
}

export function clusterSource({ cluster, credentials, tls, natMap }: RedisClusterOptions): ClusterSource {
  return {
    keyPrefix: '',
    seeds: async () => cluster.map(({ host, port = REDIS_PORT }) => `${host}:${port}`),
    at: (address) => ({
      open: () => makeNodeClient({ ...located(address, natMap), tls: tlsOptions(tls) }, credentials, 'cluster'),
    }),
  };
}

/** Connections like those of a `Cluster` that was given, which itself is only asked for its nodes. */
export function givenClusterSource(given: RedisCluster): ClusterSource {
  const { keyPrefix = '', natMap } = given.options;
  let isLooking: Promise<void> | undefined;
  const forget = (): void => void (isLooking = undefined);
  return {
    keyPrefix,
    seeds: async () => {
      if (given.status === 'wait') await given.connect();
      const nodes = given.nodes('all');
      if (nodes.length === 0) throw new Error(`the given Cluster is not connected: its status is "${given.status}"`);
      return nodes.map(({ options: { host, port } }) => `${host}:${port}`);
    },
    lookAgain: () => {
      // It asks for the slots when a command finds no node, and only then.
      isLooking ??= given.call('PING').then(forget, forget);
    },
    at: (address) => {
      const make = (prefix: string) => async () => {
        const [model] = given.nodes('all');
        if (!model) throw new Error('the given Cluster is not connected');
        const own = { ...OWN_CLIENT_OPTIONS, readOnly: false, keyPrefix: prefix, ...located(address, natMap) };
        return checkingDatabase(model.duplicate(own));
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
