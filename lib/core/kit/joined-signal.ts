import { AbortListener } from '../time/abort-listener.js';

/**
 * Signal that aborts with the first of several signals, until `end` is called. Replaces `AbortSignal.any`, which leaks
 * memory for long-lived signals on Node 20 and 22: https://github.com/nodejs/node/issues/55351
 */
export class JoinedSignal {
  readonly #controller = new AbortController();
  readonly #listeners: readonly AbortListener[];

  constructor(signals: readonly AbortSignal[]) {
    const abortedSignal = signals.find((signal) => signal.aborted);
    if (abortedSignal) this.#controller.abort(abortedSignal.reason);
    const openSignals = abortedSignal ? [] : signals;
    this.#listeners = openSignals.map(
      (signal) => new AbortListener(signal, () => this.#controller.abort(signal.reason)),
    );
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Stops listening to the joined signals. */
  end(): void {
    for (const listener of this.#listeners) listener.end();
  }
}
