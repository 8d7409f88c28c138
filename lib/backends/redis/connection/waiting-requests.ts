import { NotSentError } from '../../../core/index.js';
import type { CommandBatch, PendingRequest } from './command-batch.js';
import type { RequestsUnderWay } from './requests-under-way.js';

/**
 * Number of waiting acquisitions that are sent at once, and not at the end of the event loop iteration. The server works
 * while this process makes further requests. 64 was the best of 16 to 128 for 256 callers: a third less time each.
 */
const FULL_BATCH_SIZE = 64;

/** The requests of a connection that are not sent yet. Renewals and releases are sent before acquisitions. */
export class WaitingRequests {
  readonly #renewalsAndReleases: PendingRequest[] = [];
  readonly #acquisitions: PendingRequest[] = [];

  get count(): number {
    return this.#renewalsAndReleases.length + this.#acquisitions.length;
  }

  /** Whether so many acquisitions wait that it is worth sending them before the end of the event loop iteration. */
  get hasFullBatch(): boolean {
    return this.#acquisitions.length >= FULL_BATCH_SIZE;
  }

  get oldestOfEachKind(): readonly PendingRequest[] {
    return [this.#renewalsAndReleases[0], this.#acquisitions[0]].filter((pending) => pending !== undefined);
  }

  addAcquisition(pending: PendingRequest): void {
    this.#acquisitions.push(pending);
  }

  addRenewalOrRelease(pending: PendingRequest): void {
    this.#renewalsAndReleases.push(pending);
  }

  /** Moves requests to `batch` while `underWay` has room. Fails a request that its caller has abandoned. */
  moveTo(batch: CommandBatch, underWay: RequestsUnderWay): void {
    for (const queue of [this.#renewalsAndReleases, this.#acquisitions]) {
      let movedCount = 0;
      for (const pending of queue) {
        if (!underWay.hasCapacity) break;
        movedCount += 1;
        if (pending.request.asker?.onSend() === false) {
          pending.fail(new NotSentError('given up before it was sent'));
          continue;
        }
        underWay.add(pending);
        batch.add(pending);
      }
      if (movedCount > 0) queue.splice(0, movedCount);
    }
  }

  /** Fails the requests of each kind, in their order, up to the first that is not overdue. */
  failOverdue(error: Error, isOverdue: (pending: PendingRequest) => boolean): void {
    for (const queue of [this.#renewalsAndReleases, this.#acquisitions]) {
      const firstKeptIndex = queue.findIndex((pending) => !isOverdue(pending));
      for (const pending of queue.splice(0, firstKeptIndex < 0 ? queue.length : firstKeptIndex)) pending.fail(error);
    }
  }
}
