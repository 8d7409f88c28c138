import { randomInt } from 'node:crypto';
import { LockConfigurationError } from '../../core/index.js';
import type { RedisClient } from './redis-client.js';
import { cleanError } from './redis-error.js';

const LONGEST_RECONNECT_DELAY_MS = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;
const DISCONNECT_TIMEOUT_MS = 50;

export function reconnectDelay(attempt: number): number {
  const delay = Math.min(20 * 2 ** attempt, LONGEST_RECONNECT_DELAY_MS);
  return delay / 2 + randomInt(Math.ceil(delay / 2) + 1);
}

/**
 * No offline queue, and no retry: a command either goes out now or fails now. Whatever waited in the client would run later,
 * after its caller was told that it failed. A server that has become a replica is left: its name may lead to the master by now.
 */
export const OWN_CLIENT_OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  connectionName: 'nestjs-distributed-lock',
  retryStrategy: reconnectDelay,
  reconnectOnError: (error: Error): boolean => error.message.startsWith('READONLY'),
};

/** @throws LockConfigurationError when ioredis is not installed */
export async function makeClient(where: string | object, option: string): Promise<RedisClient> {
  const Redis = await importRedis(option);
  return typeof where === 'string'
    ? new Redis(where, OWN_CLIENT_OPTIONS)
    : new Redis({ ...OWN_CLIENT_OPTIONS, ...where });
}

async function importRedis(option: string) {
  try {
    return (await import('ioredis')).Redis;
  } catch (error) {
    const { code } = cleanError(error) as NodeJS.ErrnoException;
    if (code?.endsWith('MODULE_NOT_FOUND') !== true) throw error;
    throw new LockConfigurationError(
      `redis({ ${option} }) needs the package ioredis, version 5 or 6: npm install ioredis`,
      option,
    );
  }
}
