import { setMaxListeners } from 'node:events';

/** Calls off all that is under way. What begins later has a new signal. */
export class CallOff {
  #controller = abortController();
  /** By the caller's own signal, which may come with very many calls. */
  #joined = new WeakMap<AbortSignal, AbortSignal>();

  /** Aborts when all is called off, and with the caller's own signal. */
  signal(own?: AbortSignal): AbortSignal {
    if (!own) return this.#controller.signal;
    const joined = this.#joined.get(own) ?? AbortSignal.any([own, this.#controller.signal]);
    this.#joined.set(own, joined);
    return joined;
  }

  now(reason: unknown): void {
    const former = this.#controller;
    this.#controller = abortController();
    this.#joined = new WeakMap();
    former.abort(reason);
  }
}

/** Everyone who asks the backend listens to one signal: many listeners are expected. */
function abortController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
