import type { BackendHealth, NodeHealth, ReportedHealth } from '../../../core/index.js';

interface WatchedNode {
  readonly health: ReportedHealth;
  readonly stopWatching: () => void;
}

/**
 * The health of a cluster, which is `up` while one node can be reached. Its detail names the troubles of the other nodes.
 * When a node fails or slots move, all holds are in jeopardy until they are renewed.
 */
export class ClusterHealth {
  readonly #nodes = new Map<string, WatchedNode>();
  readonly #listeners = new Set<(health: BackendHealth) => void>();
  #trouble: string | undefined;
  #lastStatus: BackendHealth['status'] = 'idle';

  get current(): BackendHealth {
    const nodes = [...this.#nodes].map(([name, { health }]) => ({ name, ...health.current }));
    const hasNodeThatIs = (status: BackendHealth['status']): boolean => nodes.some((node) => node.status === status);
    const isDown = this.#trouble !== undefined || hasNodeThatIs('down');
    const status = hasNodeThatIs('up') ? 'up' : isDown ? 'down' : 'idle';
    const details = [...(this.#trouble === undefined ? [] : [this.#trouble]), ...nodes.flatMap(getDetails)];
    return { status, nodes, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  /** Whether the cluster or one of its nodes cannot be reached. */
  get hasTrouble(): boolean {
    const isNodeDown = ({ health }: WatchedNode): boolean => health.current.status === 'down';
    return this.#trouble !== undefined || [...this.#nodes.values()].some(isNodeDown);
  }

  watchNode(address: string, health: ReportedHealth): void {
    if (this.#nodes.get(address)?.health === health) return;
    let previousStatus = health.current.status;
    const stopWatching = health.onChange(({ status }) => {
      if (status === 'down') this.putHoldsInJeopardy();
      else if (previousStatus === 'down' || this.#lastStatus !== 'up') this.#notifyListeners(this.current);
      previousStatus = status;
    });
    this.#nodes.set(address, { health, stopWatching });
  }

  removeNode(address: string): void {
    this.#nodes.get(address)?.stopWatching();
    this.#nodes.delete(address);
  }

  /** Reports the health of the cluster as a whole. */
  report(status: BackendHealth['status'], trouble?: string): void {
    this.#trouble = status === 'down' ? trouble : undefined;
    if (this.current.status === 'down' && this.#lastStatus !== 'down') this.#notifyListeners(this.current);
  }

  /** Tells the listeners `down` and, if a node can be reached, `up`: all holders renew their leases. */
  putHoldsInJeopardy(reason?: string): void {
    const { current } = this;
    this.#notifyListeners({ ...current, status: 'down', ...(reason === undefined ? {} : { detail: reason }) });
    if (current.status === 'up') this.#notifyListeners(current);
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #notifyListeners(health: BackendHealth): void {
    this.#lastStatus = health.status;
    for (const listener of this.#listeners) listener(health);
  }
}

/** Returns the trouble of one node, for the detail of a health of several nodes. */
export function getDetails({ name, status, detail }: NodeHealth): string[] {
  if (status === 'down') return [`${name} is down: ${detail ?? 'no reason is known'}`];
  return detail === undefined ? [] : [`${name}: ${detail}`];
}
