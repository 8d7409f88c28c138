import type { RedisClient, RedisCommand } from './redis-client.js';

/** The owner of one connection's client, which connects it and reacts to a server that does not answer. */
export interface ClientKeeper {
  readonly client: RedisClient | undefined;
  /** Begins to connect. @throws LockConfigurationError when no client package is installed */
  startConnecting(): Promise<void>;
  /** Begins to connect, for requests that wait. Returns the error for them when no client can become usable. */
  ensureConnecting(): Error | undefined;
  /** Tests whether an idle connection still works. Its client is not usable until the server has answered. */
  testIdleClient(): void;
  /** Called when commands are under way and the server has sent no byte for the time-out. */
  onSilence(error: Error): void;
  /** Called when requests have waited for a usable client for the time-out. */
  onConnectTimeout(error: Error): void;
  /** Called when the server has answered a new connection for the first time. */
  onFirstReply?(sendCommand: (...command: RedisCommand) => Promise<unknown>): void;
  /** Returns the error for requests that were not answered within the time-out. */
  noAnswerError(): Error;
  close(): Promise<void>;
}
