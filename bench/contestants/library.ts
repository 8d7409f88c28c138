import { type AcquireOptions, LockService } from 'nestjs-distributed-lock/core';
import { type Connection, connectBackend } from '../../test/support/harness-connection.js';
import type { Contestant } from './contestant.js';

type ConnectionAdapter = (to: Connection) => Connection;

/**
 * Returns this library as a contestant, with the defaults that an application gets.
 * @param adaptConnection changes the connection, such as the mode of Redis
 * @param options for each acquisition. A contestant that has some takes part in races only.
 */
export function libraryContestant(
  name = 'ours',
  adaptConnection: ConnectionAdapter = (to) => to,
  options?: AcquireOptions,
): Contestant {
  return {
    name,
    renewsLease: true,
    commandsBesideScripts: [],
    ...(options ? { isRaceVariant: true } : {}),
    connect: async (to, { ttlMs, waitMs }) => {
      const locks = new LockService(await connectBackend(adaptConnection(to)), {
        defaults: { ttlMs, waitMs, ...options },
      });
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
