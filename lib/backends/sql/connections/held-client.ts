import { LockConfigurationError } from '../../../core/index.js';
import type { Around } from './sql-database.js';

const heldClients = new WeakSet<object>();

/**
 * Returns a client for a holder's writes: the driver's own one, whose statements go by way of `around`.
 * @param isOver tells whether the lock's transaction is over, after which the client refuses to work
 */
export function heldClient<T extends object>(
  client: T,
  methods: readonly string[],
  around: Around,
  isOver: () => boolean,
): T {
  const held: T = Object.create(client);
  for (const name of methods) {
    const value = (...args: unknown[]): Promise<unknown> =>
      around(async () => {
        if (isOver()) throw new Error("the lock's transaction is over: await all that its holder starts");
        const method: unknown = Reflect.get(client, name);
        return typeof method === 'function' ? Reflect.apply(method, client, args) : undefined;
      });
    Object.defineProperty(held, name, { value });
  }
  heldClients.add(held);
  return held;
}

/** @throws LockConfigurationError for a lock of another backend or strategy */
export function heldClientOf(lock: { readonly attachment?: unknown }, factory: string): object {
  const { attachment } = lock;
  if (typeof attachment === 'object' && attachment !== null && heldClients.has(attachment)) return attachment;
  throw new LockConfigurationError(`only locks of ${factory}({ strategy: 'row' }) have a client`, 'strategy');
}
