import { LockConfigurationError } from '../../../core/index.js';
import type { StatementRunner } from './sql-database.js';

const holderClients = new WeakSet<object>();

/**
 * Returns an object that inherits from the driver's client. The methods in `methodNames` run through `runStatement`,
 * and reject once `isTransactionOver` returns true.
 */
export function createHolderClient<T extends object>(
  client: T,
  methodNames: readonly string[],
  runStatement: StatementRunner,
  isTransactionOver: () => boolean,
): T {
  const holderClient: T = Object.create(client);
  for (const name of methodNames) {
    const runMethod = (...args: unknown[]): Promise<unknown> =>
      runStatement(async () => {
        if (isTransactionOver()) throw createTransactionOverError();
        const method: unknown = Reflect.get(client, name);
        return typeof method === 'function' ? Reflect.apply(method, client, args) : undefined;
      });
    Object.defineProperty(holderClient, name, { value: runMethod });
  }
  holderClients.add(holderClient);
  return holderClient;
}

export function createTransactionOverError(): Error {
  return new Error("the lock's transaction is over: await all that its holder starts");
}

/** @throws LockConfigurationError for a lock of another backend or strategy */
export function getHolderClient(lock: { readonly attachment?: unknown }, factoryName: string): object {
  const { attachment } = lock;
  if (typeof attachment === 'object' && attachment !== null && holderClients.has(attachment)) return attachment;
  throw new LockConfigurationError(`only locks of ${factoryName}({ strategy: 'row' }) have a client`, 'strategy');
}
