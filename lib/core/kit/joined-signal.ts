import { AbortListener } from '../time/abort-listener.js';

/**
 * Signal that aborts with the first of several signals, until `end`. `AbortSignal.any` leaks an entry for each call into
 * signals that live long, on Node 20 and 22: https://github.com/nodejs/node/issues/55351
 */
export class JoinedSignal {
  readonly #controller = new AbortController();
  readonly #listeners: readonly AbortListener[];

  constructor(signals: readonly AbortSignal[]) {
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted) this.#controller.abort(aborted.reason);
    const waiting = aborted ? [] : signals;
    this.#listeners = waiting.map((each) => new AbortListener(each, () => this.#controller.abort(each.reason)));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Stops listening to the other signals. */
  end(): void {
    for (const listener of this.#listeners) listener.end();
  }
}
