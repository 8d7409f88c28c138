import { setImmediate as checkPhase } from 'node:timers/promises';
import { LockService } from 'nestjs-distributed-lock/core';
import { atLeastMs, blockEventLoop, describeWanted } from '../../support/index.js';
import { RedisWorld } from './redis-world.js';

/** Beyond what the server may need on a busy machine. The test stands still for twenty times as long. */
const COMMAND_TIMEOUT_MS = Math.min(atLeastMs(100), 2_000);

const OPTIONS = {
  'redis-queue': { mode: 'queue' },
  'redis-plain': { mode: 'plain' },
  'redis-getset': { mode: 'getset' },
  'redis-queue-node-redis': { mode: 'queue', clientPackage: 'redis' },
  'redis-plain-node-redis': { mode: 'plain', clientPackage: 'redis' },
} as const;

describeWanted(
  ['redis-queue', 'redis-plain', 'redis-getset', 'redis-queue-node-redis', 'redis-plain-node-redis'] as const,
  '%s',
  (name) => {
    const world = RedisWorld.shared();

    it('A4: an answer that arrived while the event loop was blocked is an answer, and the connection stays', async () => {
      const states: string[] = [];
      const failures: string[] = [];
      const locks = world.closing(
        new LockService(world.backend({ ...OPTIONS[name], requestTimeoutMs: COMMAND_TIMEOUT_MS }), {
          observers: [
            {
              healthChanged: ({ status }) => states.push(status),
              backendFailed: ({ operation }) => failures.push(operation),
            },
          ],
        }),
      );
      await (await locks.acquire('warm-up')).release();
      // On a busy machine a server that greets late was down at first.
      expect(states.splice(0)).toContain('up');
      for (let round = 0; round < 5; round += 1) {
        const acquiring = locks.acquire('k');
        await checkPhase();
        blockEventLoop(COMMAND_TIMEOUT_MS * 2);
        const releasing = (await acquiring).release();
        await checkPhase();
        blockEventLoop(COMMAND_TIMEOUT_MS * 2);
        await releasing;
      }
      expect({ states, failures }).toEqual({ states: [], failures: [] });
    });

    it('a waiter whose time was over before the answer to another caller was read is told that the key is held', async () => {
      const failures: string[] = [];
      const locks = world.closing(
        new LockService(world.backend(OPTIONS[name]), {
          observers: [{ backendFailed: ({ operation }) => failures.push(operation) }],
        }),
      );
      await (await locks.acquire('warm-up')).release();
      const holder = locks.acquire('k');
      const waiter = locks.acquire('k', { waitMs: 150 });
      const refusal = expect(waiter).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      await checkPhase();
      blockEventLoop(atLeastMs(400));
      await refusal;
      await (await holder).release();
      expect(failures).toEqual([]);
    });
  },
);
