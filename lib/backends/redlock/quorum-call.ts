import { isFulfilledWithin, isLockError, systemClock } from '../../core/index.js';
import type { RedlockNode } from './redlock-node.js';

export function getMajority(count: number): number {
  return Math.floor(count / 2) + 1;
}

/**
 * One request to several nodes, and their answers so far. Nodes that are known to be down are not awaited, but their
 * answers count. If the other nodes are too few for a quorum, all nodes are awaited: they may be up again.
 */
export class QuorumCall<Answer> {
  readonly answers = new Map<RedlockNode, Answer>();
  readonly failures = new Map<RedlockNode, Error>();
  /** For each node, a promise that resolves when the node has answered or failed, perhaps after the call is decided. */
  readonly settlements = new Map<RedlockNode, Promise<void>>();
  readonly quorum: number;
  /** Number of nodes that may fail or refuse while the others still make a quorum. */
  readonly maxFailures: number;
  readonly #nodesNotAwaited: ReadonlySet<RedlockNode>;

  constructor(readonly nodes: readonly RedlockNode[]) {
    this.quorum = getMajority(nodes.length);
    this.maxFailures = nodes.length - this.quorum;
    const downNodes = nodes.filter((node) => node.isDown);
    this.#nodesNotAwaited = new Set(downNodes.length > this.maxFailures ? [] : downNodes);
  }

  get awaitedCount(): number {
    return this.nodes.filter((node) => this.isAwaiting(node)).length;
  }

  isAwaiting(node: RedlockNode): boolean {
    return !this.answers.has(node) && !this.failures.has(node) && !this.#nodesNotAwaited.has(node);
  }

  /** Whether a quorum has answered, whatever the answers are. */
  get hasQuorum(): boolean {
    return this.answers.size >= this.quorum;
  }

  /** Whether a quorum has answered, or so many nodes have failed that no quorum can. */
  get hasQuorumOrFailed(): boolean {
    return this.hasQuorum || this.failures.size > this.maxFailures;
  }

  /** Number of nodes that have failed or are not awaited. */
  get unavailableCount(): number {
    return this.nodes.length - this.answers.size - this.awaitedCount;
  }

  countAnswers(isCounted: (answer: Answer) => boolean): number {
    return [...this.answers.values()].filter(isCounted).length;
  }

  /** Resolves to this call when it is decided, or when no more answers are expected. */
  askAll(ask: (node: RedlockNode) => Promise<Answer>, isDecided: (call: this) => boolean): Promise<this> {
    return new Promise((resolve) => {
      const resolveIfDecided = (): void => {
        if (this.awaitedCount === 0 || isDecided(this)) resolve(this);
      };
      for (const node of this.nodes) this.settlements.set(node, this.#askNode(node, ask).then(resolveIfDecided));
      resolveIfDecided();
    });
  }

  /**
   * Waits for all nodes, for `maxMs` at most.
   * @throws LockConfigurationError when a node has failed with such an error
   */
  async assertConfiguration(maxMs: number): Promise<void> {
    await isFulfilledWithin(systemClock, maxMs, Promise.all(this.settlements.values()));
    for (const error of this.failures.values()) if (isLockError(error, 'LOCK_CONFIGURATION')) throw error;
  }

  /**
   * Returns an error with the errors of the nodes. A node that has neither answered nor failed has an error
   * only if it is known to be down.
   * @param refusals errors of nodes that have answered with a refusal
   */
  createNoQuorumError(refusals: ReadonlyMap<RedlockNode, Error> = new Map()): AggregateError {
    const errors: Error[] = [];
    const namesWithoutError: string[] = [];
    for (const node of this.nodes) {
      const { name, health } = node;
      const isDown = node.isDown && !this.answers.has(node);
      const downError = isDown ? new Error(`${name}: ${health.current.detail ?? 'is down'}`) : undefined;
      const error = this.failures.get(node) ?? refusals.get(node) ?? downError;
      if (error) errors.push(error);
      else namesWithoutError.push(name);
    }
    return new AggregateError(
      errors,
      `no quorum of ${this.quorum} among ${this.nodes.length} nodes: ${errors.map(({ message }) => message).join('; ')}` +
        (namesWithoutError.length > 0 ? `; nothing is known against ${namesWithoutError.join(' and ')}` : ''),
    );
  }

  async #askNode(node: RedlockNode, ask: (node: RedlockNode) => Promise<Answer>): Promise<void> {
    try {
      this.answers.set(node, await ask(node));
    } catch (error) {
      this.failures.set(node, error instanceof Error ? error : new Error(String(error)));
    }
  }
}
