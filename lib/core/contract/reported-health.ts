import { HealthListeners } from './health-listeners.js';
import type { BackendHealth } from './health.js';

/** Health that a store updates by calls of `report`. */
export class ReportedHealth {
  #status: BackendHealth['status'] = 'idle';
  #trouble: string | undefined;
  readonly #advice = new Map<string, string>();
  readonly #listeners = new HealthListeners();

  get current(): BackendHealth {
    const details = [...(this.#trouble === undefined ? [] : [this.#trouble]), ...this.#advice.values()];
    return { status: this.#status, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  report(status: BackendHealth['status'], trouble?: string): void {
    const hasChanged = status !== this.#status;
    this.#status = status;
    this.#trouble = trouble;
    if (hasChanged) this.#listeners.notify(this.current);
  }

  /** Sets the advice to operators about `topic`, or removes it with `undefined`. */
  setAdvice(topic: string, advice: string | undefined): void {
    if (advice === undefined) this.#advice.delete(topic);
    else this.#advice.set(topic, advice);
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    return this.#listeners.add(listener);
  }
}
