import type { Asker, ReportedHealth } from '../../../core/index.js';
import type { ScriptCall } from '../scripts/redis-script.js';
import type { RedisCommand } from './redis-client.js';

export interface RedisRequest<T> {
  /** Commands for one connection, in this order. The request fails with the first command that fails. */
  readonly commands: readonly (RedisCommand | ScriptCall)[];
  /** Command that is sent once after all requests of one write. Each of them gets its reply as the last one. */
  readonly confirmation?: RedisCommand | undefined;
  /** Returns the result of the request by the replies. An error that it throws fails the request. */
  readonly read: (replies: readonly unknown[]) => T | Promise<T>;
  /** Caller of an acquisition, who may give up before the request is sent; `undefined` for renewals and releases. */
  readonly asker?: Asker | undefined;
  /** Called before the request rejects. The server may still have carried out the commands. */
  readonly onFailure?: ((error: Error) => void) | undefined;
}

/** The servers that have the keys of a store: one server, or a cluster. */
export interface RedisServers {
  readonly timeoutMs: number;
  /** Text that the client puts before every key. */
  readonly keyPrefix: string;
  readonly health: Pick<ReportedHealth, 'current' | 'onChange' | 'report'>;
  /** Begins to connect. @throws LockConfigurationError when no client package is installed */
  startConnecting(): Promise<void>;
  /**
   * Sends the request to the server of `leaseKey`. Settles within a bounded time, even if the server does not answer.
   * @throws NotSentError when the request was not sent; after other errors the commands may have been carried out
   */
  send<T>(leaseKey: string, request: RedisRequest<T>): Promise<T>;
  /**
   * Has the servers report changes of renewed keys, as far as they can.
   * @param onChange called with the name of the key; `undefined` stands for any key
   */
  trackKeys(onChange: (name: string | undefined) => void): void;
  /** Whether the servers report changes of renewed keys, as far as it is known. */
  readonly canTrackKeys: boolean;
  /** Resolves to the servers, each of which has a part of the keys. */
  loadShards(): Promise<readonly Pick<RedisServers, 'send'>[]>;
  close(): Promise<void>;
}
