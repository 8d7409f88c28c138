import type { RedisClient, RedisCommand } from './redis-client.js';

/** Part of a `RedisConnection` that has the client, and reacts to failures of the client's connection. */
export interface ClientLifecycle {
  readonly client: RedisClient | undefined;
  /** @throws LockConfigurationError when no client package is installed */
  startConnecting(): Promise<void>;
  /**
   * Begins to connect, unless that was done. Returns the error with which the waiting requests fail, if no client can
   * become usable; `undefined` otherwise.
   */
  ensureConnecting(): Error | undefined;
  /** Tests whether an idle connection still works. The client may be unusable until the server has answered. */
  testIdleClient(): void;
  onSilence(error: Error): void;
  onConnectTimeout(error: Error): void;
  onFirstReply?(sendCommand: (...command: RedisCommand) => Promise<unknown>): void;
  createNoAnswerError(): Error;
  close(): Promise<void>;
}
