import type { ReportedHealth } from '../../../core/index.js';
import type { Question } from './question.js';

/** Where the keys of a store are: one server, or a cluster of them. */
export interface RedisServers {
  readonly health: Pick<ReportedHealth, 'current' | 'onChange'>;
  /** Connects, and has `check` ask. Rejects when either fails, which health shows. @throws LockConfigurationError no client is installed */
  start(check: () => Promise<unknown>): Promise<void>;
  /**
   * Has the server of `leaseKey` answer on one connection. Settles in a bounded time, also on a server that does not answer.
   * After a failure the requests may have been carried out nevertheless.
   * @throws NotSentError the asker gave up before it was its turn
   */
  ask<T>(leaseKey: string, question: Question<T>): Promise<T>;
  close(): Promise<void>;
}
