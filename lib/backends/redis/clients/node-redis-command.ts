import type { RedisArgument } from '../connection/redis-client.js';
import type { NodeRedisClient } from './node-redis-types.js';

/**
 * Replaces the options that a given client has for all its commands: replies are texts and numbers, whatever its
 * `typeMapping` says, and its signal and time-out do not end commands of the locks.
 */
const COMMAND_OPTIONS = { typeMapping: undefined, timeout: undefined, abortSignal: undefined, asap: false };

/** Sends a command to node-redis, which takes texts only. */
export function callNodeRedis(client: NodeRedisClient, command: string, ...args: RedisArgument[]): Promise<unknown> {
  return client.sendCommand([command, ...args.map(String)], COMMAND_OPTIONS);
}
