import type { RedisClient, RedisCommand } from './redis-client.js';

/** Keeps the client of one connection: connects it, and reacts to a server that does not answer. */
export interface ClientKeeper {
  readonly client: RedisClient | undefined;
  /** Begins to connect. @throws LockConfigurationError when no client is installed */
  startConnecting(): Promise<void>;
  /** Begins to connect, for requests that wait. Returns the error for them when no client can become usable. */
  ensureConnecting(): Error | undefined;
  /** Tests a client that may have died while it was idle. The client is not usable until it has answered. */
  testIdleClient(): void;
  /** Called when commands are under way and no byte has come for the time-out. */
  onSilence(error: Error): void;
  /** Called when requests have waited for a usable client for the time-out. */
  onConnectTimeout(error: Error): void;
  /** Called when the server has answered a new connection for the first time. */
  onFirstReply?(sendCommand: (...command: RedisCommand) => Promise<unknown>): void;
  /** Error for requests that were not answered within the time-out. */
  noAnswerError(): Error;
  close(): Promise<void>;
}
