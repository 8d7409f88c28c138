import type { Asker, ReportedHealth } from '../../../core/index.js';
import type { ScriptCall } from '../scripts/redis-script.js';
import type { RedisCommand } from './redis-client.js';

export interface RedisRequest<T> {
  /** Commands for one connection, which answers them in this order. The request fails with the first that fails. */
  readonly commands: readonly (RedisCommand | ScriptCall)[];
  /** Command that follows all requests of one write. Its reply is the last one of each request. */
  readonly confirmation?: RedisCommand | undefined;
  /** Makes the result out of the replies. An error that it throws fails the request. */
  readonly read: (replies: readonly unknown[]) => T | Promise<T>;
  /** Caller of an acquisition, who may give up before the request is sent. Renewals and releases are sent first. */
  readonly asker?: Asker | undefined;
  /** Called before the request rejects. The server may have carried out the commands nevertheless. */
  readonly onFailure?: (error: Error) => void;
}

/** The servers that have the keys of a store: one server, or a cluster. */
export interface RedisServers {
  readonly timeoutMs: number;
  /** Text that clients put before every key. */
  readonly keyPrefix: string;
  readonly health: Pick<ReportedHealth, 'current' | 'onChange' | 'report'>;
  /** Begins to connect, so that loading a client does not count as silence. @throws LockConfigurationError no client is installed */
  startConnecting(): Promise<void>;
  /**
   * Sends the request to the server of `leaseKey`. Settles within a bounded time, even if the server does not answer.
   * After a failure the commands may have been carried out nevertheless.
   * @throws NotSentError the asker gave up before the request was sent
   */
  send<T>(leaseKey: string, request: RedisRequest<T>): Promise<T>;
  /**
   * Has the servers tell when a renewed key changes, as far as they can.
   * @param onChange called with the name of the key; `undefined` stands for any key
   */
  trackKeys(onChange: (name: string | undefined) => void): void;
  /** Whether keys are tracked, as far as it is known. */
  readonly canTrackKeys: boolean;
  /** Resolves to the servers that have a part of the keys each. */
  loadShards(): Promise<readonly Pick<RedisServers, 'send'>[]>;
  close(): Promise<void>;
}
