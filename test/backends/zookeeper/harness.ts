import { encodeNamePart } from '../../../lib/backends/zookeeper/znode-name.js';
import { sortBySequence } from '../../../lib/backends/zookeeper/queue-order.js';
import { type BackendHarness, connectBackend, type Connection, type Listener } from '../../support/index.js';
import { ZookeeperEnsemble } from '../../servers/zookeeper-ensemble.js';
import { ZookeeperOperator } from '../../servers/zookeeper-operator.js';
import { TICK_MS, ZookeeperServer } from '../../servers/zookeeper-server.js';
import { atLeastMs, timeLimitOf } from '../../support/machine.js';

type ZookeeperConnection = Extract<Connection, { backend: 'zookeeper' }>;

/** Milliseconds for which a holder trusts its lock: two thirds of the session's time-out. */
const TTL_MS = Math.min(timeLimitOf(1_000), 4_000);

export interface ZookeeperHarnessOptions {
  /** The TTL of all locks, whatever a caller asks for. @default 1_000 */
  readonly sessionTtlMs?: number;
}

/** One server of its own, or three. */
export function zookeeperHarness(
  mode: ZookeeperConnection['mode'],
  size: 'single' | 'ensemble',
  { sessionTtlMs: ttlMs = TTL_MS }: ZookeeperHarnessOptions = {},
): BackendHarness {
  const sessionTtlMs = ttlMs * 1.5;
  let servers: readonly ZookeeperServer[] = [];
  let operator: ZookeeperOperator;
  const connectString = (listeners: readonly Listener[]): string =>
    listeners.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const connection = (through?: Listener): ZookeeperConnection => ({
    backend: 'zookeeper',
    connectString: connectString(through ? [through] : servers),
    sessionTtlMs,
    mode,
  });
  /** The paths of the nodes that have the key, or wait for it, in this order. */
  const nodesOf = async (key: string): Promise<string[]> => {
    const path = `/locks/${encodeNamePart(key)}`;
    if (mode === 'simple') return (await operator.read(path)) ? [path] : [];
    return sortBySequence(await operator.children(path)).map((name) => `${path}/${name}`);
  };
  return {
    server: () => {
      const [first] = servers;
      if (!first) throw new Error('the servers are not started yet');
      return first;
    },
    start: async () => {
      servers = size === 'single' ? [await ZookeeperServer.start()] : (await ZookeeperEnsemble.start()).servers;
      operator = new ZookeeperOperator(connectString(servers));
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
    // A server takes longer to start than a session of this length lasts: see restarts.spec.ts.
    restart: null,
    order: mode === 'sequential' ? 'fifo' : 'none',
    shares: mode === 'sequential',
    namesHolder: true,
    looks: mode === 'simple' ? ['token', 'evict', 'keys'] : ['token', 'waiters', 'evict', 'keys'],
    shortTtlMs: ttlMs,
    // The server ends a session later than its holder does, and looks for such sessions with every tick.
    expiresLateMs: sessionTtlMs - ttlMs + TICK_MS,
    wakesWithinMs: atLeastMs(650),
  };
}
