import { type BackendHealth, HealthListeners, type NodeHealth } from '../../core/index.js';
import { getNodeDetails } from '../redis/cluster/cluster-health.js';
import { getMajority } from './quorum-call.js';
import type { RedlockNode } from './redlock-node.js';

/** Health of a quorum of nodes. Tells listeners of each node that fails or recovers, even if the quorum stays up. */
export class QuorumHealth {
  readonly #listeners = new HealthListeners();
  #lastSummary: string;

  constructor(private readonly nodes: readonly RedlockNode[]) {
    this.#lastSummary = summaryOf(this.current);
    for (const { health } of nodes) health.onChange(() => this.#notifyListeners());
  }

  get current(): BackendHealth & { readonly nodes: readonly NodeHealth[] } {
    const nodes = this.nodes.map(({ name, health }) => ({ name, ...health.current }));
    const details = [...getEvenCountAdvice(nodes.length), ...nodes.flatMap(getNodeDetails)];
    return { status: getStatus(nodes), nodes, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    return this.#listeners.add(listener);
  }

  #notifyListeners(): void {
    const { current } = this;
    const summary = summaryOf(current);
    if (summary === this.#lastSummary) return;
    this.#lastSummary = summary;
    this.#listeners.notify(current);
  }
}

function getStatus(nodes: readonly NodeHealth[]): BackendHealth['status'] {
  const quorum = getMajority(nodes.length);
  if (nodes.filter(({ status }) => status === 'up').length >= quorum) return 'up';
  return nodes.filter(({ status }) => status === 'down').length > nodes.length - quorum ? 'down' : 'idle';
}

function summaryOf({ status, nodes = [] }: BackendHealth): string {
  const downNames = nodes.filter((node) => node.status === 'down').map(({ name }) => name);
  return [status, ...downNames].join();
}

function getEvenCountAdvice(count: number): string[] {
  if (count % 2 === 1) return [];
  return [`${count} nodes outlive no more failures than ${count - 1}, and split votes more often: use an odd number`];
}
