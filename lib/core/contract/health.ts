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
