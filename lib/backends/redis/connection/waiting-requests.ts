import { NotSentError } from '../../../core/index.js';
import type { CommandBatch, PendingRequest } from './command-batch.js';
import type { RequestsUnderWay } from './requests-under-way.js';

/** The requests of a connection that were not sent yet. Renewals and releases are sent before acquisitions. */
export class WaitingRequests {
  readonly #renewalsAndReleases: PendingRequest[] = [];
  readonly #acquisitions: PendingRequest[] = [];

  get count(): number {
    return this.#renewalsAndReleases.length + this.#acquisitions.length;
  }

  /** First requests of both kinds, as far as there are any. */
  get oldest(): readonly PendingRequest[] {
    return [this.#renewalsAndReleases[0], this.#acquisitions[0]].filter((pending) => pending !== undefined);
  }

  addAcquisition(pending: PendingRequest): void {
    this.#acquisitions.push(pending);
  }

  addRenewalOrRelease(pending: PendingRequest): void {
    this.#renewalsAndReleases.push(pending);
  }

  /** Moves requests to a batch while there are free slots. A request that its asker has abandoned fails, and is never sent. */
  moveTo(batch: CommandBatch, underWay: RequestsUnderWay): void {
    for (const queue of [this.#renewalsAndReleases, this.#acquisitions]) {
      let movedCount = 0;
      for (const pending of queue) {
        if (!underWay.hasFreeSlot) break;
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

  /** Fails the requests of each kind, in their order, up to the first that is not due. */
  failDue(error: Error, isDue: (pending: PendingRequest) => boolean): void {
    for (const queue of [this.#renewalsAndReleases, this.#acquisitions]) {
      const firstInTime = queue.findIndex((pending) => !isDue(pending));
      for (const pending of queue.splice(0, firstInTime < 0 ? queue.length : firstInTime)) pending.fail(error);
    }
  }
}
