/** Health of a backend. `idle`: no request was sent to it yet. */
export interface BackendHealth {
  readonly status: 'up' | 'down' | 'idle';
  /** Description of the trouble, or advice for an operator. Never contains a secret. */
  readonly detail?: string;
  /** Health of each server, where there are several and any of them may fail. */
  readonly nodes?: readonly NodeHealth[];
}

/** Source of a backend's health, which it knows without a request. See `ReportedHealth`. */
export interface HealthSource {
  readonly current: BackendHealth;
  /**
   * Calls `listener` on every change of the status, or of a node's, until the returned function is called. `down` puts
   * every hold in jeopardy that is renewed. `up` has every hold renewed at once, so that a lease lost in a restart is
   * told within a round trip.
   */
  onChange(listener: (health: BackendHealth) => void): () => void;
}

export interface NodeHealth extends Omit<BackendHealth, 'nodes'> {
  /** Host and port, or another name that no other node has. */
  readonly name: string;
}

/** Health that a store reports as it learns of it, for health pages and for the renewal of leases. */
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

  /** Notes what an operator should change about `topic`. `undefined` ends that advice. */
  setAdvice(topic: string, advice: string | undefined): void {
    if (advice === undefined) this.#advice.delete(topic);
    else this.#advice.set(topic, advice);
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
