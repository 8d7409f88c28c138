import type { ZnodeEvent } from './single-connection-client.js';

type Listener = (event: ZnodeEvent) => void;

/** Listeners by znode. The server notifies a connection once, however many listeners a znode has. */
export class WatchList {
  readonly #listeners = new Map<string, Set<Listener>>();

  add(path: string, listener: Listener): void {
    const listeners = this.#listeners.get(path) ?? new Set();
    this.#listeners.set(path, listeners.add(listener));
  }

  delete(path: string, listener: Listener): void {
    const listeners = this.#listeners.get(path);
    if (listeners?.delete(listener) === true && listeners.size === 0) this.#listeners.delete(path);
  }

  fire(path: string, event: ZnodeEvent): void {
    const listeners = this.#listeners.get(path);
    this.#listeners.delete(path);
    for (const listener of listeners ?? []) listener(event);
  }

  fireAll(event: ZnodeEvent): void {
    for (const path of this.#listeners.keys()) this.fire(path, event);
  }
}
