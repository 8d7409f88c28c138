import type { Asker } from '../../../core/index.js';
import type { ScriptCall } from '../scripts/redis-script.js';
import type { RedisCommand } from './redis-client.js';

/** Goes out once for all questions of one write, after them. Each instance is a request of its own. */
export interface SharedRequest {
  readonly once: RedisCommand;
}

export type RedisRequest = RedisCommand | ScriptCall | SharedRequest;

/** Requests that one connection answers in their order. The question fails with the first request that fails. */
export interface Question<T> {
  readonly requests: readonly RedisRequest[];
  /** Makes the answer out of the replies. An error that it throws fails the question. */
  readonly read: (replies: readonly unknown[]) => T | Promise<T>;
  /** Wants a lease: may give up before it is sent, and waits until all that keeps or frees a lease has been sent. */
  readonly asker?: Asker | undefined;
  /** The server may have carried out the requests nevertheless. */
  readonly onFailure?: (error: Error) => void;
}
