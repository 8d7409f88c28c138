import { setMaxListeners } from 'node:events';
import { Redis } from 'iovalkey';
import type { LockBackend } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis-5';
import type { RedisClientKind } from './harness-connection.js';

interface GivenOptions {
  readonly url: string;
  readonly mode: RedisMode;
  readonly requestTimeoutMs?: number;
}

/** A backend on a client of the application, which ends with the backend. */
export function giveClient(kind: NonNullable<RedisClientKind['given']>, { url, ...rest }: GivenOptions): LockBackend {
  const { client, end } = clientOf(kind, url);
  const backend = redis({ client, ...rest })();
  const close = backend.close.bind(backend);
  backend.close = () => close().finally(end);
  return backend;
}

function clientOf(kind: NonNullable<RedisClientKind['given']>, url: string) {
  if (kind === 'iovalkey') {
    const client = new Redis(url, { lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    return { client, end: () => client.disconnect() };
  }
  // Version 5 may open two connections when one ends in its handshake, and ends one of them: see `OwnNodeRedis`.
  const socketController = new AbortController();
  // A socket that could not connect stays a listener of its signal.
  setMaxListeners(0, socketController.signal);
  const options = {
    url,
    disableOfflineQueue: true,
    maintNotifications: 'disabled' as const,
    socket: { reconnectStrategy: 50, signal: socketController.signal },
  };
  const client = kind === 'redis' ? createClient(options) : createClient5(options);
  client.on('error', () => undefined);
  const end = (): void => {
    if (client.isOpen) client.destroy();
    socketController.abort();
  };
  return { client, end };
}
