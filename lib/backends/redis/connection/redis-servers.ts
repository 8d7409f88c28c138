import type { Caller, ReportedHealth } from '../../../core/index.js';
import type { ScriptCall } from '../scripts/redis-script.js';
import type { RedisCommand } from './redis-client.js';

export interface RedisRequest<T> {
  /** Commands for one connection, in this order. The request fails with the first command that fails. */
  readonly commands: readonly (RedisCommand | ScriptCall)[];
  /**
   * Command that is sent once, after all requests of one write. Its reply is also the last reply of each request that
   * has a confirmation.
   */
  readonly confirmation?: RedisCommand | undefined;
  /** Returns the result of the request, or throws to fail the request. */
  readonly read: (replies: readonly unknown[]) => T | Promise<T>;
  /** Caller of an acquisition, who may give up before the request is sent; `undefined` for renewals and releases. */
  readonly caller?: Caller | undefined;
  /** Called before the request rejects. The server may still have carried out the commands. */
  readonly onFailure?: ((error: Error) => void) | undefined;
  /** Called when a reply arrives after the request has failed: the server has carried out the commands. */
  readonly onLateReply?: (() => void) | undefined;
}

/** One server, or all nodes of one cluster. */
export interface RedisServers {
  readonly timeoutMs: number;
  /** Text that the client puts before every key. */
  readonly keyPrefix: string;
  readonly health: Pick<ReportedHealth, 'current' | 'onChange' | 'report'>;
  /** @throws LockConfigurationError when no client package is installed */
  startConnecting(): Promise<void>;
  /**
   * Settles within a bounded time, even if the server does not answer.
   * @param leaseKey key that decides which server gets the request, and which requests may share its command
   * @throws NotSentError when the request was not sent; after other errors the commands may have been carried out
   */
  send<T>(leaseKey: string, request: RedisRequest<T>): Promise<T>;
  /**
   * Starts to track the keys that this process renews.
   * @param onChange called with the name of a tracked key that has changed; `undefined` stands for any key
   */
  trackKeys(onChange: (name: string | undefined) => void): void;
  readonly shouldTrackMoreKeys: boolean;
  /** Resolves to the masters, each of which has a part of the keys. */
  loadShards(): Promise<readonly Pick<RedisServers, 'send'>[]>;
  close(): Promise<void>;
}
