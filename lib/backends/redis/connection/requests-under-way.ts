import type { PendingRequest } from './command-batch.js';

/**
 * Maximum number of commands under way, which a server answers within some milliseconds. With more, a renewal would
 * wait longer for the commands before it.
 */
const MAX_COMMANDS = 500;

export class RequestsUnderWay {
  readonly #requests: PendingRequest[] = [];
  #freeCommandCount = MAX_COMMANDS;
  #unconfirmedCount = 0;

  get isEmpty(): boolean {
    return this.#requests.length === 0;
  }

  get hasCapacity(): boolean {
    return this.#freeCommandCount > 0;
  }

  /**
   * Whether a request waits for the confirmation by the replicas. Meanwhile the server answers no further command of
   * the connection.
   */
  get hasUnconfirmed(): boolean {
    return this.#unconfirmedCount > 0;
  }

  add(pending: PendingRequest): void {
    pending.index = this.#requests.push(pending) - 1;
    this.#freeCommandCount -= pending.commandCount;
    if (pending.request.confirmation) this.#unconfirmedCount += 1;
  }

  /** Removes a request in constant time: the last request of the list takes its place. */
  remove(pending: PendingRequest): void {
    const { index, commandCount, request } = pending;
    const lastRequest = this.#requests.pop();
    if (lastRequest && lastRequest !== pending) {
      this.#requests[index] = lastRequest;
      lastRequest.index = index;
    }
    this.#freeCommandCount += commandCount;
    if (request.confirmation) this.#unconfirmedCount -= 1;
  }

  failAll(error: Error): void {
    for (const pending of this.#requests.slice()) pending.fail(error);
  }
}
