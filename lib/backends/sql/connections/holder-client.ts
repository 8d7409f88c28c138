import { LockConfigurationError } from '../../../core/index.js';
import type { StatementRunner } from './sql-database.js';

const holderClients = new WeakSet<object>();

/**
 * Returns the driver's own client with `methods` that run by `runStatement`, and refuse to work once `isOver` returns
 * true.
 */
export function createHolderClient<T extends object>(
  client: T,
  methods: readonly string[],
  runStatement: StatementRunner,
  isOver: () => boolean,
): T {
  const holderClient: T = Object.create(client);
  for (const name of methods) {
    const runMethod = (...args: unknown[]): Promise<unknown> =>
      runStatement(async () => {
        if (isOver()) throw new Error("the lock's transaction is over: await all that its holder starts");
        const method: unknown = Reflect.get(client, name);
        return typeof method === 'function' ? Reflect.apply(method, client, args) : undefined;
      });
    Object.defineProperty(holderClient, name, { value: runMethod });
  }
  holderClients.add(holderClient);
  return holderClient;
}

/** @throws LockConfigurationError for a lock of another backend or strategy */
export function getHolderClient(lock: { readonly attachment?: unknown }, factory: string): object {
  const { attachment } = lock;
  if (typeof attachment === 'object' && attachment !== null && holderClients.has(attachment)) return attachment;
  throw new LockConfigurationError(`only locks of ${factory}({ strategy: 'row' }) have a client`, 'strategy');
}
