import type { BackendHealth, NodeHealth, ReportedHealth } from '../../../core/index.js';

/**
 * The health of a cluster: `up` while a part of it can be reached, with the trouble of the rest. A part that fails, or
 * slots that move, put all holds in jeopardy for a moment: until the holds that are well are renewed.
 */
export class ClusterHealth {
  readonly #nodes = new Map<string, { readonly health: ReportedHealth; readonly forget: () => void }>();
  readonly #listeners = new Set<(health: BackendHealth) => void>();
  #trouble: string | undefined;
  #told: BackendHealth['status'] = 'idle';

  get current(): BackendHealth {
    const nodes = [...this.#nodes].map(([name, { health }]) => ({ name, ...health.current }));
    const has = (status: BackendHealth['status']): boolean => nodes.some((node) => node.status === status);
    const status = has('up') ? 'up' : this.#trouble !== undefined || has('down') ? 'down' : 'idle';
    const details = [...(this.#trouble === undefined ? [] : [this.#trouble]), ...nodes.flatMap(detailsOf)];
    return { status, nodes, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  /** Whether a part of the cluster cannot be reached. */
  get troubled(): boolean {
    return (
      this.#trouble !== undefined || [...this.#nodes.values()].some(({ health }) => health.current.status === 'down')
    );
  }

  watch(address: string, health: ReportedHealth): void {
    if (this.#nodes.get(address)?.health === health) return;
    let before = health.current.status;
    const forget = health.onChange(({ status }) => {
      if (status === 'down') this.doubt();
      else if (before === 'down' || this.#told !== 'up') this.#tell(this.current);
      before = status;
    });
    this.#nodes.set(address, { health, forget });
  }

  forget(address: string): void {
    this.#nodes.get(address)?.forget();
    this.#nodes.delete(address);
  }

  /** The health of the cluster as a whole. */
  report(status: BackendHealth['status'], trouble?: string): void {
    this.#trouble = status === 'down' ? trouble : undefined;
    if (this.current.status === 'down' && this.#told !== 'down') this.#tell(this.current);
  }

  /** Lets all holders look whether their leases are still theirs. */
  doubt(reason?: string): void {
    const { current } = this;
    this.#tell({ ...current, status: 'down', ...(reason === undefined ? {} : { detail: reason }) });
    if (current.status === 'up') this.#tell(current);
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(health: BackendHealth): void {
    this.#told = health.status;
    for (const listener of this.#listeners) listener(health);
  }
}

/** The trouble of one node in words, for the health of many. */
export function detailsOf({ name, status, detail }: NodeHealth): string[] {
  if (status === 'down') return [`${name} is down: ${detail ?? 'no reason is known'}`];
  return detail === undefined ? [] : [`${name}: ${detail}`];
}
