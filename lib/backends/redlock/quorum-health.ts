import type { BackendHealth, NodeHealth } from '../../core/index.js';
import { detailsOfNode } from '../redis/cluster/cluster-health.js';
import { majorityOf } from './quorum-call.js';
import type { RedlockNode } from './redlock-node.js';

/** The health of a quorum of nodes. A failing minority changes no status, but listeners hear that it comes and goes. */
export class QuorumHealth {
  readonly #listeners = new Set<(health: BackendHealth) => void>();
  #told: string;

  constructor(private readonly nodes: readonly RedlockNode[]) {
    this.#told = outline(this.current);
    for (const { health } of nodes) health.onChange(() => this.#tell());
  }

  get current(): BackendHealth & { readonly nodes: readonly NodeHealth[] } {
    const nodes = this.nodes.map(({ name, health }) => ({ name, ...health.current }));
    const details = [...evenAdvice(nodes.length), ...nodes.flatMap(detailsOfNode)];
    return { status: statusOf(nodes), nodes, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    const { current } = this;
    const news = outline(current);
    if (news === this.#told) return;
    this.#told = news;
    for (const listener of this.#listeners) listener(current);
  }
}

function statusOf(nodes: readonly NodeHealth[]): BackendHealth['status'] {
  const quorum = majorityOf(nodes.length);
  if (nodes.filter(({ status }) => status === 'up').length >= quorum) return 'up';
  return nodes.filter(({ status }) => status === 'down').length > nodes.length - quorum ? 'down' : 'idle';
}

/** Listeners hear of its changes. Nodes that connect for the first time are no news. */
function outline({ status, nodes = [] }: BackendHealth): string {
  const down = nodes.filter((node) => node.status === 'down').map(({ name }) => name);
  return [status, ...down].join();
}

function evenAdvice(count: number): string[] {
  if (count % 2 === 1) return [];
  return [`${count} nodes outlive no more failures than ${count - 1}, and split votes more often: use an odd number`];
}
