import type { RedisConnection } from './redis-connection.js';
import { asList } from './redis-reply.js';
import { RENEW } from './redis-scripts.js';

/** A script blocks the server while it runs: so many keys take it about a third of a millisecond. */
const LARGEST_BATCH = 250;

interface Renewal {
  readonly leaseKey: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly resolve: (ours: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends the renewals of one turn as one script call, so that a thousand locks cost four calls a round. */
export class RenewalBatch {
  #pending: Renewal[] = [];

  constructor(private readonly connection: RedisConnection) {}

  /** Whether the lease is still `owner`'s, for another `ttlMs`. A call that fails rejects all that were in it. */
  renew(leaseKey: string, owner: string, ttlMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ leaseKey, owner, ttlMs: Math.ceil(ttlMs), resolve, reject });
      if (this.#pending.length === 1) queueMicrotask(this.#flush);
    });
  }

  readonly #flush = (): void => {
    const pending = this.#pending;
    this.#pending = [];
    // On a cluster this is where they would be grouped by slot.
    for (let i = 0; i < pending.length; i += LARGEST_BATCH) void this.#send(pending.slice(i, i + LARGEST_BATCH));
  };

  async #send(batch: readonly Renewal[]): Promise<void> {
    try {
      const keys = batch.map(({ leaseKey }) => leaseKey);
      const args = batch.flatMap(({ owner, ttlMs }) => [owner, ttlMs]);
      const answers = asList(await this.connection.run(RENEW, keys, args));
      for (const [i, { resolve }] of batch.entries()) resolve(Number(answers[i]) === 1);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
