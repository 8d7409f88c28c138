import { type AcquireOptions, LockService } from 'nestjs-distributed-lock/core';
import { type Connection, connectBackend } from '../../test/support/harness-connection.js';
import type { Contestant } from './contestant.js';

type Way = (to: Connection) => Connection;

/**
 * As an application uses it, with nothing tuned.
 * @param how it reaches the backend, where there is more than one way
 * @param options that change how locks are taken and released, which is seen in races only
 */
export function ours(name = 'ours', how: Way = (to) => to, options?: AcquireOptions): Contestant {
  return {
    name,
    renews: true,
    ...(options ? { racesOnly: true } : {}),
    connect: async (to, { ttlMs, waitMs }) => {
      const locks = new LockService(await connectBackend(how(to)), { defaults: { ttlMs, waitMs, ...options } });
      await locks.start();
      return {
        acquire: async (key) => {
          const lock = await locks.acquire(key);
          return () => lock.release();
        },
        withLock: (key, work) => locks.withLock(key, work),
        close: () => locks.close(),
      };
    },
  };
}
