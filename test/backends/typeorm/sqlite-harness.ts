import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { atLeastMs, type BackendHarness, connectBackend, type Door } from '../../support/index.js';
import { MEMORY_DIR } from '../../servers/memory-dir.js';

/** A file of its own. There is no server to restart; whoever keeps a write transaction open freezes it for all others. */
export function sqliteHarness(door: Door = 'typeorm'): BackendHarness {
  let directory = '';
  let operator: Operator;
  const connection = () => ({ backend: 'sqlite', database: join(directory, 'locks.db'), door }) as const;
  return {
    start: async () => {
      directory = await mkdtemp(join(MEMORY_DIR, 'sqlite-locks-'));
      operator = openOperator(door, connection().database);
    },
    stop: async () => {
      operator.close();
      await rm(directory, { recursive: true });
    },
    connect: () => connectBackend(connection()),
    connection,
    revoke: async (key) => {
      operator.prepare('update distributed_lock set owner = null, expires_at = 0 where lock_key = ?').run(key);
    },
    leftovers: async (key) => {
      const held = operator.prepare('select owner from distributed_lock where lock_key = ? and owner is not null');
      return held.all(key).map(String);
    },
    freeze: async () => {
      operator.exec('begin immediate');
      return async () => void operator.exec('rollback');
    },
    restart: null,
    order: 'none',
    shares: true,
    transfers: true,
    namesHolder: true,
    looks: ['token', 'leftMs', 'evict', 'keys'],
    shortTtlMs: atLeastMs(500),
    wakesWithinMs: atLeastMs(650),
  };
}

type Operator = Pick<Database.Database, 'exec' | 'close'> & {
  prepare(sql: string): { run(...values: unknown[]): unknown; all(...values: unknown[]): unknown[] };
};

/** By the driver of the locks: two copies of SQLite in one process do not see each other's locks. */
function openOperator(door: Door, file: string): Operator {
  const options = { timeout: 1_000 };
  const ofNode = process.getBuiltinModule('node:sqlite') as
    { readonly DatabaseSync: new (path: string, settings: object) => Operator } | undefined;
  return door === 'driver' && ofNode ? new ofNode.DatabaseSync(file, options) : new Database(file, options);
}
