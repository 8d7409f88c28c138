import type { RedisClient, RedisCommand } from './redis-client.js';

export interface ClientKeeper {
  readonly client: RedisClient | undefined;
  /** @throws LockConfigurationError when no client package is installed */
  startConnecting(): Promise<void>;
  /** Returns the error for the waiting requests when no client can become usable. */
  ensureConnecting(): Error | undefined;
  /** Tests whether an idle connection still works. The client may be unusable until the server has answered. */
  testIdleClient(): void;
  onSilence(error: Error): void;
  onConnectTimeout(error: Error): void;
  onFirstReply?(sendCommand: (...command: RedisCommand) => Promise<unknown>): void;
  noAnswerError(): Error;
  close(): Promise<void>;
}
