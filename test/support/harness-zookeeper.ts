import { nameOfKey } from '../../lib/backends/zookeeper/node-name.js';
import { inOrder } from '../../lib/backends/zookeeper/queue-order.js';
import type { BackendHarness } from '../conformance/backend-harness.js';
import { ZookeeperEnsemble } from '../servers/zookeeper-ensemble.js';
import { ZookeeperOperator } from '../servers/zookeeper-operator.js';
import { ZookeeperServer } from '../servers/zookeeper-server.js';
import { type Connection, connectBackend } from './harness-connection.js';

type ZookeeperConnection = Extract<Connection, { backend: 'zookeeper' }>;

export interface ZookeeperHarness extends BackendHarness {
  readonly servers: () => readonly ZookeeperServer[];
  readonly operator: () => ZookeeperOperator;
  readonly connection: () => ZookeeperConnection;
}

/** The session; a holder trusts it for two thirds of that. */
const SESSION_MS = 1_200;

/** One server of its own, or three. */
export function zookeeperHarness(mode: ZookeeperConnection['mode'], size: 'single' | 'ensemble'): ZookeeperHarness {
  let servers: readonly ZookeeperServer[] = [];
  let operator: ZookeeperOperator;
  const connection = (): ZookeeperConnection => ({
    backend: 'zookeeper',
    connectString: servers.map(({ address }) => address).join(','),
    sessionTimeoutMs: SESSION_MS,
    mode,
  });
  /** The paths of the nodes that have the key, or wait for it, in this order. */
  const nodesOf = async (key: string): Promise<string[]> => {
    const path = `/locks/${nameOfKey(key)}`;
    if (mode === 'simple') return (await operator.read(path)) ? [path] : [];
    return inOrder(await operator.children(path)).map((name) => `${path}/${name}`);
  };
  return {
    servers: () => servers,
    operator: () => operator,
    start: async () => {
      servers = size === 'single' ? [await ZookeeperServer.start()] : (await ZookeeperEnsemble.start()).servers;
      operator = new ZookeeperOperator(connection().connectString);
    },
    stop: async () => {
      await operator.close();
      await Promise.all(servers.map((server) => server.stop()));
    },
    connect: () => connectBackend(connection()),
    connection,
    revoke: async (key) => {
      const [holder] = await nodesOf(key);
      if (holder !== undefined) await operator.delete(holder);
    },
    leftovers: nodesOf,
    freeze: async () => {
      for (const server of servers) server.freeze();
      return async () => servers.forEach((server) => server.thaw());
    },
    // A server takes as long to start as a session of this length lasts: see restarts.spec.ts.
    restart: null,
    order: mode === 'sequential' ? 'fifo' : 'none',
    namesHolder: true,
    shortTtlMs: (SESSION_MS * 2) / 3,
    wakesWithinMs: SESSION_MS / 3 + 100,
  };
}
