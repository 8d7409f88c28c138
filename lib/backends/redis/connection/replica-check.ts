import type { SharedRequest } from '../scripts/queue-scripts.js';

/** Whether enough replicas have what was written just before, on the same connection: https://redis.io/docs/latest/commands/wait/ */
export class ReplicaCheck {
  /** What to ask after a write: nothing where no replica is required. The server says nothing else until it is answered. */
  readonly requests: readonly SharedRequest[];

  constructor(
    private readonly minReplicas: number,
    private readonly timeoutMs: number,
  ) {
    this.requests = minReplicas > 0 ? [{ once: ['WAIT', minReplicas, timeoutMs] }] : [];
  }

  /** @throws when they are too few, so that a "yes" they do not share is none */
  assert(answer: unknown): void {
    if (this.minReplicas === 0 || Number(answer) >= this.minReplicas) return;
    throw new Error(`only ${Number(answer)} of ${this.minReplicas} replicas had it within ${this.timeoutMs} ms`);
  }
}

export const NO_REPLICAS = new ReplicaCheck(0, 0);
