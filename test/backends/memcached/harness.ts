import { itemNames } from '../../../lib/backends/memcached/item-names.js';
import { type BackendHarness, connectBackend, type Listener, type MemcachedConnection } from '../../support/index.js';
import { MemcachedServer } from '../../servers/memcached-server.js';
import { atLeastMs } from '../../support/machine.js';

export interface MemcachedHarness extends BackendHarness {
  /** For faults of its own. */
  readonly server: () => MemcachedServer;
  readonly connection: (through?: Listener) => MemcachedConnection;
}

/** A server of its own, whose memory is a file, so that it can be restarted both ways. */
export function memcachedHarness(protocol: 'meta' | 'classic'): MemcachedHarness {
  let server: MemcachedServer;
  const connection: MemcachedHarness['connection'] = ({ port } = server) => ({
    backend: 'memcached',
    servers: `127.0.0.1:${port}`,
    protocol,
  });
  const leaseOf = (key: string): string => itemNames('lock', key).lease;
  return {
    server: () => server,
    start: async () => {
      server = await MemcachedServer.start({ persistent: true });
    },
    stop: () => server.stop(),
    connect: () => connectBackend(connection()),
    connection,
    revoke: async (key) => {
      await server.ask(`delete ${leaseOf(key)}`);
    },
    leftovers: async (key) => {
      const found = await server.ask(`get ${leaseOf(key)}`);
      return found === 'END\r\n' ? [] : [found];
    },
    freeze: async () => {
      server.freeze();
      return async () => server.thaw();
    },
    restart: (how) => server.restart(how),
    order: 'none',
    shares: true,
    transfers: true,
    namesHolder: true,
    looks: ['leftMs', 'evict'],
    shortTtlMs: atLeastMs(2_000),
    expiresLateMs: 4_500,
    wakesWithinMs: atLeastMs(650),
  };
}
