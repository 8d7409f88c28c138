import { Redis } from 'ioredis';
import type { BackendHarness, Listener } from '../conformance/backend-harness.js';
import { RedisServer } from '../servers/redis-server.js';
import { type Connection, connectBackend } from './harness-connection.js';

type RedisConnection = Extract<Connection, { backend: 'redis' }>;

export interface RedisHarness extends BackendHarness {
  /** For faults of its own. */
  readonly server: () => RedisServer;
}

/** A server of its own, which keeps its data, so that it can be restarted both ways. */
export function redisHarness(mode: RedisConnection['mode']): RedisHarness {
  let server: RedisServer;
  let operator: Redis;
  const connection = ({ port }: Listener = server): RedisConnection => ({
    backend: 'redis',
    url: `redis://127.0.0.1:${port}`,
    mode,
  });
  const keysOf = async (key: string): Promise<string[]> => {
    const leaseKey = `lock:{${key.replace(/[%{}]/gu, encodeURIComponent)}}`;
    const keys = await operator.keys('*');
    return keys.filter((name) => name === leaseKey || (name.startsWith(`${leaseKey}:`) && !name.endsWith(':f')));
  };
  return {
    server: () => server,
    start: async () => {
      server = await RedisServer.start({ persistent: true });
      operator = new Redis(server.url, { retryStrategy: () => 20 });
      operator.on('error', () => undefined);
    },
    stop: async () => {
      operator.disconnect();
      await server.stop();
    },
    connect: () => connectBackend(connection()),
    connection,
    revoke: async (key) => {
      const [lease] = (await keysOf(key)).toSorted();
      if (lease !== undefined) await operator.del(lease);
    },
    leftovers: keysOf,
    freeze: async () => {
      server.freeze();
      return async () => server.thaw();
    },
    restart: (options) => server.restart(options),
    order: mode === 'queue' ? 'fifo' : 'none',
    namesHolder: true,
    // With less left than a quarter of the command time-out, `getset` does not release: the lease ends by itself.
    shortTtlMs: mode === 'getset' ? 1_000 : 300,
    wakesWithinMs: mode === 'queue' ? 250 : 500,
  };
}
