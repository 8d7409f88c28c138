import { lockStore, type LockAcquireResult } from 'nestjs-distributed-lock/nestjs-locks';
import { type Connection, connectBackend } from '../support/harness-connection.js';
import { serve } from '../support/serve.js';

let store: ReturnType<typeof lockStore> | undefined;

const api = {
  open: async (connection: Connection) => {
    store = lockStore(await connectBackend(connection));
    await store.onModuleInit();
  },
  /** Asks for every key at once. */
  acquire: ({ keys, owner }: { keys: readonly string[]; owner: string }): Promise<LockAcquireResult[]> =>
    Promise.all(keys.map((key) => opened().acquire(key, owner, 60_000))),
  release: ({ key, owner }: { key: string; owner: string }) => opened().release(key, owner),
};

export type RacerApi = typeof api;

function opened(): ReturnType<typeof lockStore> {
  if (!store) throw new Error('not open');
  return store;
}

serve(api);
