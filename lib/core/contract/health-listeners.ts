import { callListener } from './call-listener.js';
import type { BackendHealth } from './health.js';

/** Listeners to changes of a backend's health. */
export class HealthListeners {
  readonly #listeners = new Set<(health: BackendHealth) => void>();

  /** Returns a function that removes `listener`. */
  add(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  notify(health: BackendHealth): void {
    for (const listener of this.#listeners) callListener('a listener of health threw', () => listener(health));
  }
}
