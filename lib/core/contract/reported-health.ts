import type { BackendHealth } from './health.js';

/**
 * The state of the server as far as it is known without asking, for health pages and for holders who must look after
 * their leases.
 */
export class ReportedHealth {
  #status: BackendHealth['status'] = 'idle';
  #trouble: string | undefined;
  readonly #advice = new Map<string, string>();
  readonly #listeners = new Set<(health: BackendHealth) => void>();

  get current(): BackendHealth {
    const details = [...(this.#trouble === undefined ? [] : [this.#trouble]), ...this.#advice.values()];
    return { status: this.#status, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  report(status: BackendHealth['status'], trouble?: string): void {
    const changed = status !== this.#status;
    this.#status = status;
    this.#trouble = trouble;
    if (changed) for (const listener of this.#listeners) listener(this.current);
  }

  /** Says what an operator should change about `topic`; `undefined` when nothing is left to change. */
  advise(topic: string, advice: string | undefined): void {
    if (advice === undefined) this.#advice.delete(topic);
    else this.#advice.set(topic, advice);
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
