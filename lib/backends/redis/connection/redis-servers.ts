import type { Asker, ReportedHealth } from '../../../core/index.js';
import type { RedisRequest } from '../scripts/queue-scripts.js';

/** What the stores know of where their keys are: one server, or a cluster of them. */
export interface RedisServers {
  readonly health: Pick<ReportedHealth, 'current' | 'onChange'>;
  /** Connects, and has `check` ask. Rejects when either fails, which health shows. @throws LockConfigurationError no client is installed */
  start(check: () => Promise<unknown>): Promise<void>;
  /**
   * Has the server of `leaseKey` answer all requests, in order and on one connection. Rejects with the first failure; the
   * other requests may have been carried out. Settles in a bounded time, also on a server that does not answer.
   */
  ask(leaseKey: string, ...requests: readonly RedisRequest[]): Promise<unknown[]>;
  /**
   * The same for whoever wants a lease: with very much to do, all that keeps or frees one goes first.
   * @throws NotSentError the asker gave up before it was its turn
   */
  askFor(asker: Asker | undefined, leaseKey: string, ...requests: readonly RedisRequest[]): Promise<unknown[]>;
  close(): Promise<void>;
}
