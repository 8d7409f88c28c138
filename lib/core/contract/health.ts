/** Health of a backend. `idle`: no request was sent to the backend yet. */
export interface BackendHealth {
  readonly status: 'up' | 'down' | 'idle';
  /** Description of the trouble, or advice for an operator. Never contains a secret. */
  readonly detail?: string;
  /** Health of each server, where the backend has several. */
  readonly nodes?: readonly NodeHealth[];
}

/** Source of a backend's last known health and of its changes. A reading costs no request. See `ReportedHealth`. */
export interface HealthSource {
  readonly current: BackendHealth;
  /**
   * Calls `listener` on every change of the status, or of a node's, until the returned function is called. On
   * `down` the service reports its renewed holds as in jeopardy. On `up` it renews all holds at once, so that a lease lost
   * in a restart is noticed within a round trip.
   */
  onChange(listener: (health: BackendHealth) => void): () => void;
}

export interface NodeHealth extends Omit<BackendHealth, 'nodes'> {
  /** Host and port, or another name that no other node has. */
  readonly name: string;
}

/** Health that a store updates by calls of `report`. */
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
    const hasChanged = status !== this.#status;
    this.#status = status;
    this.#trouble = trouble;
    if (hasChanged) for (const listener of this.#listeners) listener(this.current);
  }

  /** Sets the advice to operators about `topic`, or removes it with `undefined`. */
  setAdvice(topic: string, advice: string | undefined): void {
    if (advice === undefined) this.#advice.delete(topic);
    else this.#advice.set(topic, advice);
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
