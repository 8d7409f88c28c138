import { Redis } from 'ioredis';
import { type BackendHarness, connectBackend, RedisServer, scriptsRun } from '../../support/index.js';
import { atLeastMs, timeLimitOf } from '../../support/machine.js';

/** Time within which a release reaches a minority of the masters; the machine may be busy. */
const MINORITY_MS = timeLimitOf(2_000);

export interface RedlockHarness extends BackendHarness {
  /** For faults of single ones. */
  readonly servers: () => readonly RedisServer[];
}

/** Masters of its own, which keep their data, so that they can be restarted both ways. */
export function redlockHarness(masters = 5): RedlockHarness {
  let servers: RedisServer[] = [];
  let operators: Redis[] = [];
  const connection = () => ({ backend: 'redlock', urls: servers.map(({ url }) => url) }) as const;
  return {
    servers: () => servers,
    start: async () => {
      servers = await Promise.all(Array.from({ length: masters }, () => RedisServer.start({ persistent: true })));
      operators = servers.map(({ url }) => new Redis(url, { retryStrategy: () => 20 }));
      for (const operator of operators) operator.on('error', () => undefined);
    },
    stop: async () => {
      for (const operator of operators) operator.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    },
    connect: () => connectBackend(connection()),
    connection,
    requests: () => scriptsRun(servers),
    revoke: async (key) => {
      await Promise.all(operators.map((operator) => operator.del(leaseKeyOf(key))));
    },
    leftovers: async (key) => {
      const leases = async (): Promise<string[]> => {
        const found = await Promise.all(operators.map((operator) => operator.keys('*')));
        return found.flat().filter((name) => name === leaseKeyOf(key));
      };
      // A release is over when a quorum has it. It is on its way to the others.
      const end = performance.now() + MINORITY_MS;
      let left = await leases();
      while (left.length > 0 && left.length <= masters / 2 && performance.now() < end) left = await leases();
      return left;
    },
    freeze: async () => {
      for (const server of servers) server.freeze();
      return async () => servers.forEach((server) => server.thaw());
    },
    restart: async (options) => {
      await Promise.all(servers.map((server) => server.restart(options)));
    },
    order: 'none',
    namesHolder: true,
    looks: ['token', 'leftMs', 'evict'],
    // Five servers and their five connections take their time on a busy machine.
    shortTtlMs: atLeastMs(500),
    wakesWithinMs: atLeastMs(650),
  };
}

export function leaseKeyOf(key: string): string {
  return `redlock:{${key.replace(/[%{}]/gu, encodeURIComponent)}}`;
}
