import { setImmediate } from 'node:timers';
import { systemClock } from '../../../core/index.js';
import type { RedisArgument, RedisClient } from '../connection/redis-client.js';
import type { NodeRedisClient } from './node-redis-types.js';

const LATE_WRITE_DELAY_MS = 100;

/**
 * Options that replace those of the application: its `typeMapping` would change replies, and its signal and time-out
 * would end commands.
 */
const COMMAND_OPTIONS = { typeMapping: undefined, timeout: undefined, abortSignal: undefined, asap: false };

/** Sends a command with its arguments as texts, because node-redis takes no numbers. */
export function callNodeRedis(client: NodeRedisClient, command: string, ...args: RedisArgument[]): Promise<unknown> {
  return client.sendCommand([command, ...args.map(String)], COMMAND_OPTIONS);
}

/**
 * Stand-in for the socket of node-redis, which is private. `RedisConnection` counts a server as silent if no reply
 * comes and `bytesRead` stays the same. node-redis writes a command in the next event loop iteration. If a blocked loop
 * delays that write, `bytesRead` grows here although nothing was read, so that the server does not count as silent.
 */
export class LateWriteMonitor {
  readonly stream: NonNullable<RedisClient['stream']> & { bytesRead: number } = {
    bytesRead: 0,
    cork: () => undefined,
    uncork: () => undefined,
  };
  #isWritePending = false;

  onCall(): void {
    if (this.#isWritePending) return;
    this.#isWritePending = true;
    const calledAt = systemClock.now();
    setImmediate(() => {
      this.#isWritePending = false;
      if (systemClock.now() - calledAt > LATE_WRITE_DELAY_MS) this.stream.bytesRead += 1;
    });
  }
}
