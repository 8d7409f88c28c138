import { randomInt } from 'node:crypto';
import { LockConfigurationError } from '../../core/index.js';
import { cleanError } from './redis-error.js';

/** What is used of an ioredis client. Structural, so that `Redis` of ioredis 5 and of 6 both fit, also from a second copy. */
export interface RedisClient {
  readonly status: string;
  readonly isCluster: boolean;
  call(command: string, ...args: RedisArgument[]): Promise<unknown>;
  pipeline(commands: unknown[][]): RedisPipeline;
  duplicate(override?: object): RedisClient;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

export interface RedisPipeline {
  exec(): Promise<[error: Error | null, reply: unknown][] | null>;
}

export type RedisArgument = string | number;
export type RedisCommand = readonly [name: string, ...args: RedisArgument[]];

/** Where a backend's connections come from, and whether they are its own to cut and to close. */
export interface ClientSource {
  /** The client that was given, if one was. */
  readonly given?: RedisClient;
  open(): Promise<RedisClient>;
  /** A connection of our own for the subscription, not connected yet. */
  openSubscriber(): Promise<RedisClient>;
}

const LONGEST_RECONNECT_DELAY_MS = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;
const DISCONNECT_TIMEOUT_MS = 50;

/**
 * No offline queue, and no retry: a command either goes out now or fails now. Whatever waited in the client would run later,
 * after its caller was told that it failed.
 */
const OWN_CLIENT_OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  connectionName: 'nestjs-distributed-lock',
  retryStrategy: (attempt: number): number => {
    const delay = Math.min(20 * 2 ** attempt, LONGEST_RECONNECT_DELAY_MS);
    return delay / 2 + randomInt(Math.ceil(delay / 2) + 1);
  },
};

export function sourceOf(options: { readonly url?: string; readonly client?: RedisClient }): ClientSource {
  const { client, url = '' } = options;
  if (client) {
    return {
      given: client,
      open: async () => client,
      openSubscriber: async () => client.duplicate(OWN_CLIENT_OPTIONS),
    };
  }
  const make = (): Promise<RedisClient> => makeClient(url);
  return { open: make, openSubscriber: make };
}

async function makeClient(url: string): Promise<RedisClient> {
  try {
    const { Redis } = await import('ioredis');
    return new Redis(url, OWN_CLIENT_OPTIONS);
  } catch (error) {
    const { code } = cleanError(error) as NodeJS.ErrnoException;
    if (code?.endsWith('MODULE_NOT_FOUND') !== true) throw error;
    throw new LockConfigurationError(
      'redis({ url }) needs the package ioredis, version 5 or 6: npm install ioredis',
      'url',
    );
  }
}
