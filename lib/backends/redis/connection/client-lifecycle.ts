import type { RedisClient, RedisCommand } from './redis-client.js';

/** Part of a `RedisConnection` that has the client, and reacts to failures of the client's connection. */
export interface ClientLifecycle {
  readonly client: RedisClient | undefined;
  /** @throws LockConfigurationError when no client package is installed */
  startConnecting(): Promise<void>;
  /**
   * Begins to connect, if that has not begun. Returns an error if no client can become usable: the waiting requests
   * must fail with that error.
   */
  ensureConnecting(): Error | undefined;
  /** Tests whether an idle connection still works. May make the client unusable until the server has answered. */
  testIdleClient(): void;
  onSilence(error: Error): void;
  onConnectTimeout(error: Error): void;
  onFirstSuccess?(sendCommand: (...command: RedisCommand) => Promise<unknown>): void;
  createNoAnswerError(): Error;
  close(): Promise<void>;
}
