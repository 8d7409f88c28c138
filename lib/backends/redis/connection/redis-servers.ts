import type { Asker, ReportedHealth } from '../../../core/index.js';
import type { ScriptCall } from '../scripts/redis-script.js';
import type { RedisCommand } from './redis-client.js';

export interface Question<T> {
  /** One connection answers them in their order. The question fails with the first that fails. */
  readonly requests: readonly (RedisCommand | ScriptCall)[];
  /** Follows the requests, once for all questions of a write. Its reply is the last. */
  readonly confirmation?: RedisCommand | undefined;
  /** Makes the answer out of the replies. An error that it throws fails the question. */
  readonly read: (replies: readonly unknown[]) => T | Promise<T>;
  /** Wants a lease: may give up before it is sent, and waits until all that keeps or frees a lease has been sent. */
  readonly asker?: Asker | undefined;
  /** The server may have carried out the requests nevertheless. */
  readonly onFailure?: (error: Error) => void;
}

/** Where the keys of a store are: one server, or a cluster of them. */
export interface RedisServers {
  readonly timeoutMs: number;
  /** What clients put before every key. */
  readonly keyPrefix: string;
  readonly health: Pick<ReportedHealth, 'current' | 'onChange' | 'report'>;
  /** Begins to connect: to load a client is no silence. @throws LockConfigurationError it is not installed */
  prepare(): Promise<void>;
  /**
   * Has the server of `leaseKey` answer on one connection. Settles in a bounded time, also on a server that does not
   * answer. After a failure the requests may have been carried out nevertheless.
   * @throws NotSentError the asker gave up before it was its turn
   */
  ask<T>(leaseKey: string, question: Question<T>): Promise<T>;
  /** Those that have a part of the keys each. */
  shards(): Promise<readonly Pick<RedisServers, 'ask'>[]>;
  close(): Promise<void>;
}
