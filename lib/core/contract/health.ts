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
   * Calls `listener` on every change of the status, or of a node's status, until the returned function is called. On
   * `down` the service reports its locks as in jeopardy, and on `up` it renews them at once. A lease that was lost in a
   * restart is then noticed within a round trip. Locks with `watchdog: false` take no part in this.
   */
  onChange(listener: (health: BackendHealth) => void): () => void;
}

export interface NodeHealth extends Omit<BackendHealth, 'nodes'> {
  /** Host and port, or another name that no other node has. */
  readonly name: string;
}
