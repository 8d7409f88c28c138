import { setImmediate } from 'node:timers';
import { systemClock } from '../../../core/index.js';
import type { RedisArgument, RedisClient } from '../connection/redis-client.js';
import type { NodeRedisClient } from './node-redis-types.js';

/** Delay of a write that is longer than an iteration of the event loop takes, unless the loop was blocked. */
const MAX_WRITE_DELAY_MS = 100;

/**
 * Options that replace those of a given client. Replies are texts and numbers, whatever its `typeMapping` says. Its
 * signal and its time-out do not end commands of the locks.
 */
const COMMAND_OPTIONS = { typeMapping: undefined, timeout: undefined, abortSignal: undefined, asap: false };

/** Sends a command to node-redis, which takes texts only. */
export function callNodeRedis(client: NodeRedisClient, command: string, ...args: RedisArgument[]): Promise<unknown> {
  return client.sendCommand([command, ...args.map(String)], COMMAND_OPTIONS);
}

/**
 * Tells by its `bytesRead` that a server could not answer yet. node-redis writes commands in the next iteration of the
 * event loop: while the loop was blocked, the server has not seen them. The socket of node-redis is private.
 */
export class WriteDelays {
  readonly stream: NonNullable<RedisClient['stream']> & { bytesRead: number } = {
    bytesRead: 0,
    cork: () => undefined,
    uncork: () => undefined,
  };
  #isWritePending = false;

  /** Called after each command that was given to node-redis. */
  onCall(): void {
    if (this.#isWritePending) return;
    this.#isWritePending = true;
    const calledAt = systemClock.now();
    setImmediate(() => {
      this.#isWritePending = false;
      if (systemClock.now() - calledAt > MAX_WRITE_DELAY_MS) this.stream.bytesRead += 1;
    });
  }
}
