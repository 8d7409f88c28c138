import { Redis } from 'ioredis';
import { atLeastMs, type BackendHarness, type Listener, RedisServer, scriptsRun } from '../../support/index.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { RedisSentinels } from '../../servers/redis-sentinels.js';
import {
  connectBackend,
  type RedisClientKind,
  type RedisConnection,
  type RedisTopology,
} from '../../support/harness-connection.js';

type Mode = RedisConnection['mode'];

const LOOKS = {
  queue: ['token', 'leftMs', 'waiters', 'evict', 'keys'],
  plain: ['leftMs', 'evict', 'keys'],
  getset: ['leftMs', 'evict', 'keys'],
} as const;

/** A server, or several that act as one. */
interface Servers {
  /** Where they are; the one that a proxy can stand in front of, by way of another port too. */
  place(through?: Listener): RedisTopology;
  /** Those that have keys. */
  readonly masters: readonly Listener[];
  freeze(): void;
  thaw(): void;
  restart(options: { readonly empty: boolean }): Promise<void>;
  stop(): Promise<void>;
}

/** A server of its own, which keeps its data, so that it can be restarted both ways. */
export function redisHarness(mode: Mode, kind: RedisClientKind = {}): BackendHarness {
  return harnessOn(mode, kind, async () => {
    const server = await RedisServer.start({ persistent: true });
    const place = ({ port }: Listener = server): RedisTopology => ({ url: `redis://127.0.0.1:${port}` });
    return Object.assign(server, { place, masters: [server] });
  });
}

/** The first lease of a process counts from before it has found out who the master is, on a machine that is busy with our servers. */
const FOUND_FIRST = { shortTtlMs: atLeastMs(1_000) };

/** A master and a replica under three Sentinels, who have more patience than any freeze of the contract lasts. */
export function redisSentinelHarness(mode: Mode, kind: RedisClientKind = {}): BackendHarness {
  const harness = harnessOn(mode, kind, async () => {
    const set = await RedisSentinels.start({ persistent: true, downAfterMs: 10_000 });
    const master = await set.master();
    const place = ({ port }: Listener = master): RedisTopology => ({
      sentinels: set.addresses,
      name: set.name,
      natMap: { [`127.0.0.1:${master.port}`]: { host: '127.0.0.1', port } },
    });
    return Object.assign(set, { place, masters: [master] });
  });
  return { ...harness, ...FOUND_FIRST };
}

/** Three masters. Their replicas are tested where they matter; without them the machine has less to do. */
export function redisClusterHarness(mode: Mode, kind: RedisClientKind = {}): BackendHarness {
  // One proxy would cut off one holder's connections to a third of the keys.
  let masters: readonly Listener[] = [];
  const { server: _, ...harness } = harnessOn(mode, kind, async () => {
    const cluster = await RedisCluster.start({ persistent: true, replicas: 0, nodeTimeoutMs: 15_000 });
    masters = cluster.servers;
    return Object.assign(cluster, { place: () => ({ cluster: cluster.addresses }), masters });
  });
  return { ...harness, ...FOUND_FIRST, requests: () => scriptsRun(masters) };
}

function harnessOn(mode: Mode, kind: RedisClientKind, startServers: () => Promise<Servers>): BackendHarness {
  let servers: Servers;
  let operators: Redis[];
  const connection = (through?: Listener): RedisConnection => ({
    backend: 'redis',
    mode,
    ...servers.place(through),
    ...kind,
  });
  const server = (): Listener => {
    const [master] = servers.masters;
    if (!master) throw new Error('there is a master');
    return master;
  };
  const namesOf = (operator: Redis) => operator.keys('*');
  const keysOf = async (key: string): Promise<string[]> => {
    const leaseKey = `lock:{${key.replace(/[%{}]/gu, encodeURIComponent)}}`;
    const names = (await Promise.all(operators.map(namesOf))).flat();
    return names.filter((name) => name === leaseKey || (name.startsWith(`${leaseKey}:`) && !name.endsWith(':f')));
  };
  return {
    start: async () => {
      servers = await startServers();
      operators = servers.masters.map(({ port }) => new Redis(port, '127.0.0.1', { retryStrategy: () => 20 }));
      for (const operator of operators) operator.on('error', () => undefined);
    },
    stop: async () => {
      for (const operator of operators) operator.disconnect();
      await servers.stop();
    },
    connect: () => connectBackend(connection()),
    connection,
    server,
    revoke: async (key) => {
      const [lease] = (await keysOf(key)).toSorted();
      // In a cluster one node has it, and the others refuse.
      if (lease !== undefined) await Promise.any(operators.map((operator) => operator.del(lease)));
    },
    leftovers: keysOf,
    freeze: async () => {
      servers.freeze();
      return async () => servers.thaw();
    },
    restart: (options) => servers.restart(options),
    order: mode === 'queue' ? 'fifo' : 'none',
    namesHolder: true,
    looks: LOOKS[mode],
    shares: mode === 'queue',
    transfers: mode !== 'getset',
    // With less left than a quarter of the command time-out, `getset` does not release: the lease ends by itself.
    shortTtlMs: atLeastMs(mode === 'getset' ? 1_000 : 500),
    wakesWithinMs: atLeastMs(650),
  };
}
