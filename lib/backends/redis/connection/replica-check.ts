import type { RedisRequest, SharedRequest } from './question.js';

/** Whether enough replicas have what was written just before, on the same connection: https://redis.io/docs/latest/commands/wait/ */
export class ReplicaCheck {
  readonly #wait: SharedRequest | undefined;

  constructor(
    private readonly minReplicas: number,
    private readonly timeoutMs: number,
  ) {
    if (minReplicas > 0) this.#wait = { once: ['WAIT', minReplicas, timeoutMs] };
  }

  /** The writes, and the check where replicas are required. Until it is answered the server says nothing else. */
  after(...writes: readonly RedisRequest[]): readonly RedisRequest[] {
    return this.#wait ? [...writes, this.#wait] : writes;
  }

  /** @throws when they are too few, so that the write counts as failed */
  assert(answer: unknown): void {
    if (this.minReplicas === 0 || Number(answer) >= this.minReplicas) return;
    throw new Error(`only ${Number(answer)} of ${this.minReplicas} replicas had it within ${this.timeoutMs} ms`);
  }
}
