import { type BackendHealth, HealthListeners, type NodeHealth, type ReportedHealth } from '../../../core/index.js';

interface WatchedNode {
  readonly health: ReportedHealth;
  readonly stopWatching: () => void;
}

/**
 * Health of a cluster, which is `up` while one node can be reached. When a node fails or slots move, all holds are in
 * jeopardy until they are renewed.
 */
export class ClusterHealth {
  readonly #nodes = new Map<string, WatchedNode>();
  readonly #listeners = new HealthListeners();
  #downReason: string | undefined;
  #lastNotifiedStatus: BackendHealth['status'] = 'idle';

  get current(): BackendHealth {
    const nodes = [...this.#nodes].map(([name, { health }]) => ({ name, ...health.current }));
    const hasNodeThatIs = (status: BackendHealth['status']): boolean => nodes.some((node) => node.status === status);
    const isDown = this.#downReason !== undefined || hasNodeThatIs('down');
    const status = hasNodeThatIs('up') ? 'up' : isDown ? 'down' : 'idle';
    const details = [...(this.#downReason === undefined ? [] : [this.#downReason]), ...nodes.flatMap(getNodeDetails)];
    return { status, nodes, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  /** Whether the cluster or one of its nodes is down. */
  get hasFailure(): boolean {
    const isNodeDown = ({ health }: WatchedNode): boolean => health.current.status === 'down';
    return this.#downReason !== undefined || [...this.#nodes.values()].some(isNodeDown);
  }

  watchNode(address: string, health: ReportedHealth): void {
    if (this.#nodes.get(address)?.health === health) return;
    let previousStatus = health.current.status;
    const stopWatching = health.onChange(({ status }) => {
      if (status === 'down') this.putHoldsInJeopardy();
      else if (previousStatus === 'down' || this.#lastNotifiedStatus !== 'up') this.#notifyListeners(this.current);
      previousStatus = status;
    });
    this.#nodes.set(address, { health, stopWatching });
  }

  removeNode(address: string): void {
    this.#nodes.get(address)?.stopWatching();
    this.#nodes.delete(address);
  }

  /** @param downReason why no node of the cluster answers; `undefined` when one has answered */
  report(downReason: string | undefined): void {
    this.#downReason = downReason;
    const { current } = this;
    if (current.status !== 'idle' && current.status !== this.#lastNotifiedStatus) this.#notifyListeners(current);
  }

  /** Reports `down` to the listeners and, if a node can be reached, `up`: holders then renew their leases. */
  putHoldsInJeopardy(reason?: string): void {
    const { current } = this;
    this.#notifyListeners({ ...current, status: 'down', ...(reason === undefined ? {} : { detail: reason }) });
    if (current.status === 'up') this.#notifyListeners(current);
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    return this.#listeners.add(listener);
  }

  #notifyListeners(health: BackendHealth): void {
    this.#lastNotifiedStatus = health.status;
    this.#listeners.notify(health);
  }
}

export function getNodeDetails({ name, status, detail }: NodeHealth): string[] {
  if (status === 'down') return [`${name} is down: ${detail ?? 'no reason is known'}`];
  return detail === undefined ? [] : [`${name}: ${detail}`];
}
