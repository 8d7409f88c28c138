import { LockService } from 'nestjs-distributed-lock/core';
import { type Connection, connectBackend } from '../../support/harness-connection.js';
import type { Contestant } from './contestant.js';

/** As an application uses it, with nothing tuned. @param how it reaches the backend, where there is more than one way */
export function ours(name = 'ours', how: (to: Connection) => Connection = (to) => to): Contestant {
  return {
    name,
    renews: true,
    connect: async (to, { ttlMs, waitMs }) => {
      const locks = new LockService(await connectBackend(how(to)), { defaults: { ttlMs, waitMs } });
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
