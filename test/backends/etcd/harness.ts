import { EtcdLockNames } from '../../../lib/backends/etcd/lock-names.js';
import { atLeastMs, type BackendHarness, connectBackend, type Connection, timeLimitOf } from '../../support/index.js';
import { EtcdServer } from '../../servers/etcd-server.js';
import { EtcdOperator } from './operator.js';

type EtcdConnection = Extract<Connection, { backend: 'etcd' }>;

export interface EtcdHarness extends BackendHarness {
  /** For faults of its own. */
  readonly server: () => EtcdServer;
  readonly operator: () => EtcdOperator;
}

const names = new EtcdLockNames('lock');

/** Whole seconds, and longer than a restart takes: three members also start, and elect a leader, on a busy machine. */
const TTL_MS = { 1: wholeSecondsOf(2_000), 3: wholeSecondsOf(3_000) };

/** Servers of its own, which keep their data, so that they can be restarted both ways. */
export function etcdHarness(
  members: 1 | 3,
  { sessionTtlMs = TTL_MS[members] }: { readonly sessionTtlMs?: number } = {},
): EtcdHarness {
  let server: EtcdServer;
  let operator: EtcdOperator;
  const connection: EtcdHarness['connection'] = (through): EtcdConnection => ({
    backend: 'etcd',
    endpoints: through ? [`http://127.0.0.1:${through.port}`] : server.urls,
    sessionTtlMs,
  });
  return {
    server: () => server,
    operator: () => operator,
    start: async () => {
      server = await EtcdServer.start({ members });
      operator = new EtcdOperator(server.urls);
    },
    stop: () => server.stop(),
    connect: () => connectBackend(connection()),
    connection,
    requests: async () => {
      const { Txn = 0, Range = 0, DeleteRange = 0, Watch = 0 } = await server.requests();
      return Txn + Range + DeleteRange + Watch;
    },
    revoke: async (key) => {
      const [oldest] = await operator.list(names.queueRange(key).key);
      if (oldest) await operator.remove(oldest.key);
    },
    leftovers: async (key) => (await operator.list(names.queueRange(key).key)).map((kv) => kv.key),
    freeze: async () => {
      server.freeze();
      return async () => server.thaw();
    },
    restart: (options) => server.restart(options),
    order: 'fifo',
    shares: true,
    transfers: true,
    namesHolder: true,
    looks: ['token', 'waiters', 'evict', 'keys'],
    shortTtlMs: sessionTtlMs,
    wakesWithinMs: atLeastMs(1_000),
  };
}

/** At least `ms`, and longer on a machine that is slow now. */
function wholeSecondsOf(ms: number): number {
  return Math.min(Math.ceil(timeLimitOf(ms) / 1_000), 6) * 1_000;
}
