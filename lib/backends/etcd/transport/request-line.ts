import { Deadline, NotSentError, Semaphore, systemClock } from '../../../core/index.js';

/** Maximum number of concurrent requests. It allows full throughput. A larger one would only delay all answers. */
const MAX_CONCURRENT_REQUESTS = 64;
/** Factor on the request time-out: time to notice that a member is silent, and to hear from the next one. */
const SILENCE_FACTOR = 2;

/** Function to call right before a request is sent. It returns `false` if the caller has given up. */
export type OnSend = () => boolean;

/** Limits the number of concurrent requests. The others wait in line until the server has been silent for too long. */
export class RequestLine {
  readonly #places = new Semaphore(MAX_CONCURRENT_REQUESTS);
  readonly #closeController = new AbortController();
  #lastAnswerAt = -Infinity;

  constructor(private readonly requestTimeoutMs: number) {}

  /**
   * @throws NotSentError if the server is silent, if `onSend` returns false, or after `close`: `send` was not called
   */
  async run<T>(send: () => Promise<T>, onSend: OnSend = () => true): Promise<T> {
    if (!this.#places.enterAtOnce()) await this.#waitForPlace();
    try {
      if (!onSend()) throw new NotSentError('the caller gave up before the request was sent');
      return await send();
    } finally {
      this.#places.leave();
    }
  }

  /** Must be called at each reply of the server, also to requests outside of this line. */
  noteAnswer(): void {
    this.#lastAnswerAt = systemClock.now();
  }

  /** Rejects all requests that wait in line. */
  close(): void {
    this.#closeController.abort();
  }

  async #waitForPlace(): Promise<void> {
    const { signal } = this.#closeController;
    const maxSilenceMs = this.requestTimeoutMs * SILENCE_FACTOR;
    const calledAt = systemClock.now();
    const deadline = (): Deadline => Deadline.after(maxSilenceMs, systemClock, Math.max(calledAt, this.#lastAnswerAt));
    if (!signal.aborted && (await this.#places.enter({ deadline, signal }))) return;
    throw new NotSentError(
      signal.aborted ? 'the backend is closed' : `no answer to earlier requests within ${Math.round(maxSilenceMs)} ms`,
    );
  }
}
