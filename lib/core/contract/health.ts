/** Whether the backend can be reached. `idle`: nothing was asked of it yet. */
export interface BackendHealth {
  readonly status: 'up' | 'down' | 'idle';
  /** The trouble, or what an operator should change. Never contains a secret. */
  readonly detail?: string;
  /** Its servers one by one, where there are several and any of them may fail. */
  readonly nodes?: readonly NodeHealth[];
}

/** A backend's knowledge of its server, without asking it. See `ReportedHealth`. */
export interface HealthSource {
  readonly current: BackendHealth;
  /**
   * Calls `listener` on every change of the status, or of that of a node; what it returns stops that. `down` puts every
   * hold in jeopardy that is renewed, `up` has every hold renewed at once, so that a lease lost in a restart is told
   * within a round trip.
   */
  onChange(listener: (health: BackendHealth) => void): () => void;
}

export interface NodeHealth extends Omit<BackendHealth, 'nodes'> {
  /** Host and port, or what else tells it from the others. */
  readonly name: string;
}

/** The state of the server, as known without asking: for health pages, and for holders who renew their leases. */
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
