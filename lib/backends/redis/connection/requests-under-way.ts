import type { PendingRequest } from './command-batch.js';

/**
 * Maximum number of commands under way. A server is busy with so many, and answers them within some milliseconds. With
 * more, a renewal would wait longer for the commands before it.
 */
const MAX_COMMANDS = 500;

/** The requests of a connection that were sent and are not settled. */
export class RequestsUnderWay {
  readonly #requests: PendingRequest[] = [];
  #freeCommands = MAX_COMMANDS;
  #unconfirmedCount = 0;

  get isEmpty(): boolean {
    return this.#requests.length === 0;
  }

  get hasCapacity(): boolean {
    return this.#freeCommands > 0;
  }

  /** Whether a request waits for its confirmation. Until then the server answers no further command. */
  get hasUnconfirmed(): boolean {
    return this.#unconfirmedCount > 0;
  }

  add(pending: PendingRequest): void {
    pending.index = this.#requests.push(pending) - 1;
    this.#freeCommands -= pending.size;
    if (pending.request.confirmation) this.#unconfirmedCount += 1;
  }

  /** Removes a settled request in constant time: the last request takes its place. */
  remove(pending: PendingRequest): void {
    const { index, size, request } = pending;
    const last = this.#requests.pop();
    if (last && last !== pending) {
      this.#requests[index] = last;
      last.index = index;
    }
    this.#freeCommands += size;
    if (request.confirmation) this.#unconfirmedCount -= 1;
  }

  failAll(error: Error): void {
    for (const pending of this.#requests.slice()) pending.fail(error);
  }
}
