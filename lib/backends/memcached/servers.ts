import { createHash } from 'node:crypto';
import { isLockError, ReportedHealth } from '../../core/index.js';
import { MemcachedError } from './error.js';
import { MemcachedNode } from './node.js';
import type { ResolvedMemcachedOptions } from './options.js';

/**
 * Servers over which keys are spread, by highest random weight (Thaler and Ravishankar 1998). A key belongs to one
 * server for good: if the key moved away from a server that is down, a second holder would get it.
 */
export class MemcachedServers {
  readonly health = new ReportedHealth();
  readonly #nodes: readonly MemcachedNode[];
  #firstConnectionsPromise: Promise<unknown> | undefined;

  constructor(options: ResolvedMemcachedOptions) {
    const names = options.servers.map(({ name }) => name).toSorted();
    // The name of a single server does not matter, and may differ between processes.
    const serverListText = names.length === 1 ? 'one server' : names.join(',');
    this.#nodes = options.servers.map(
      ({ name, host, port }) =>
        new MemcachedNode(name, { ...options, host, port, serverListText }, () => this.#reportHealth()),
    );
  }

  getNode(key: string): MemcachedNode {
    const [firstNode, secondNode] = this.#nodes;
    if (firstNode && !secondNode) return firstNode;
    let heaviestNode = firstNode;
    let maxWeight = -1;
    for (const node of this.#nodes) {
      const weight = createHash('sha256').update(`${node.name}\n${key}`).digest().readUIntBE(0, 6);
      if (weight <= maxWeight) continue;
      heaviestNode = node;
      maxWeight = weight;
    }
    if (!heaviestNode) throw new TypeError('there is no server');
    return heaviestNode;
  }

  /**
   * @throws as `assertSameServerList`; LockConfigurationError when a name leads to several servers; MemcachedError when
   * the only server does not answer
   */
  async start(): Promise<void> {
    const [firstNode, secondNode] = this.#nodes;
    if (firstNode && !secondNode) await firstNode.run(async () => undefined);
    else await this.assertSameServerList();
    for (const { failure } of this.#nodes) if (isLockError(failure, 'LOCK_CONFIGURATION')) throw failure;
  }

  /**
   * Resolves when more than half of the servers have confirmed the list. Another list is therefore noticed before
   * anybody locks by it, even while a few servers are down.
   * @throws LockConfigurationError when other processes use another list; MemcachedError when too few servers answer
   */
  async assertSameServerList(): Promise<void> {
    const nodeCount = this.#nodes.length;
    if (nodeCount === 1) return;
    this.#firstConnectionsPromise ??= Promise.all(this.#nodes.map((node) => node.tryToConnect()));
    await this.#firstConnectionsPromise;
    for (const { serverListFailure } of this.#nodes) if (serverListFailure) throw serverListFailure;
    const agreeingCount = this.#nodes.filter(({ hasSameServerList }) => hasSameServerList).length;
    if (agreeingCount * 2 > nodeCount) return;
    throw new MemcachedError(
      'not-sent',
      `only ${agreeingCount} of ${nodeCount} servers could be asked which servers others use`,
    );
  }

  close(): void {
    for (const node of this.#nodes) node.close();
  }

  #reportHealth(): void {
    for (const { name, advice } of this.#nodes) this.health.setAdvice(name, advice && `${name}: ${advice}`);
    const failures = this.#nodes.flatMap(({ failure }) => failure?.message ?? []);
    if (failures.length > 0) this.health.report('down', failures.join('; '));
    else this.health.report('up');
  }
}
