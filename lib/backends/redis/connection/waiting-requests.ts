import { NotSentError } from '../../../core/index.js';
import type { CommandBatch, PendingRequest } from './command-batch.js';
import type { RequestsUnderWay } from './requests-under-way.js';

/**
 * Number of waiting acquisitions that are sent before the event loop iteration ends: the server works while this
 * process makes further requests. For 256 callers, 64 was the best value from 16 to 128.
 */
const FULL_BATCH_SIZE = 64;

/** The unsent requests of a connection: renewals and releases are sent before acquisitions. */
export class WaitingRequests {
  readonly #renewalsAndReleases: PendingRequest[] = [];
  readonly #acquisitions: PendingRequest[] = [];

  get count(): number {
    return this.#renewalsAndReleases.length + this.#acquisitions.length;
  }

  get hasFullBatch(): boolean {
    return this.#acquisitions.length >= FULL_BATCH_SIZE;
  }

  get oldestOfEachQueue(): readonly PendingRequest[] {
    return [this.#renewalsAndReleases[0], this.#acquisitions[0]].filter((pending) => pending !== undefined);
  }

  addAcquisition(pending: PendingRequest): void {
    this.#acquisitions.push(pending);
  }

  addRenewalOrRelease(pending: PendingRequest): void {
    this.#renewalsAndReleases.push(pending);
  }

  moveTo(batch: CommandBatch, requestsUnderWay: RequestsUnderWay): void {
    for (const queue of [this.#renewalsAndReleases, this.#acquisitions]) {
      let removedCount = 0;
      for (const pending of queue) {
        if (!requestsUnderWay.hasCapacity) break;
        removedCount += 1;
        if (pending.request.caller?.onSend() === false) {
          pending.fail(new NotSentError('given up before it was sent'));
          continue;
        }
        requestsUnderWay.add(pending);
        batch.add(pending);
      }
      if (removedCount > 0) queue.splice(0, removedCount);
    }
  }

  /** Fails the overdue requests. Looks for them only at the start of each queue, where the oldest requests are. */
  failOverdue(error: Error, isOverdue: (pending: PendingRequest) => boolean): void {
    for (const queue of [this.#renewalsAndReleases, this.#acquisitions]) {
      const firstKeptIndex = queue.findIndex((pending) => !isOverdue(pending));
      for (const pending of queue.splice(0, firstKeptIndex < 0 ? queue.length : firstKeptIndex)) pending.fail(error);
    }
  }
}
