import type { RedlockNode } from './redlock-node.js';

export function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}

/**
 * The answers of several nodes to one question so far. A minority that is known to be down is not waited for, though
 * its answers count. When too few are left for a quorum, all are waited for: the news may be old.
 */
export class QuorumCall<Answer> {
  readonly answers = new Map<RedlockNode, Answer>();
  readonly failures = new Map<RedlockNode, Error>();
  readonly quorum: number;
  /** How many may refuse or fail, and a quorum is left. */
  readonly spare: number;
  readonly #given: ReadonlySet<RedlockNode>;
  /** Resolve when the node has answered or failed, which may be long after the call is decided. */
  readonly heard = new Map<RedlockNode, Promise<void>>();

  constructor(readonly nodes: readonly RedlockNode[]) {
    this.quorum = majorityOf(nodes.length);
    this.spare = nodes.length - this.quorum;
    const down = nodes.filter((node) => node.down);
    this.#given = new Set(down.length > this.spare ? [] : down);
  }

  /** How many are expected to answer still. */
  get waiting(): number {
    return this.nodes.filter((node) => this.awaits(node)).length;
  }

  /** Whether the node is expected to answer still. */
  awaits(node: RedlockNode): boolean {
    return !this.answers.has(node) && !this.failures.has(node) && !this.#given.has(node);
  }

  get hasQuorum(): boolean {
    return this.answers.size >= this.quorum;
  }

  /** Whether a quorum has answered, or so many have failed that none can. */
  get isSettled(): boolean {
    return this.hasQuorum || this.failures.size > this.spare;
  }

  /** How many failed, or are taken to fail. */
  get failed(): number {
    return this.nodes.length - this.answers.size - this.waiting;
  }

  count(wanted: (answer: Answer) => boolean): number {
    return [...this.answers.values()].filter(wanted).length;
  }

  /** Asks all nodes at once. Resolves as soon as the call is decided, or when no more answers are expected. */
  put(question: (node: RedlockNode) => Promise<Answer>, decided: (call: this) => boolean): Promise<this> {
    return new Promise((resolve) => {
      const resolveIfDecided = (): void => {
        if (this.waiting === 0 || decided(this)) resolve(this);
      };
      for (const node of this.nodes) this.heard.set(node, this.#hear(node, question).then(resolveIfDecided));
      resolveIfDecided();
    });
  }

  /**
   * That there is no quorum: an error for each node that failed or refused. The message names the others, too. A node
   * that has not answered yet is at fault only if it is known to be down.
   */
  error(refusals: ReadonlyMap<RedlockNode, Error> = new Map()): AggregateError {
    const errors: Error[] = [];
    const others: string[] = [];
    for (const node of this.nodes) {
      const { name, down, health } = node;
      const isDown = down && !this.answers.has(node);
      const downError = isDown ? new Error(`${name}: ${health.current.detail ?? 'is down'}`) : undefined;
      const error = this.failures.get(node) ?? refusals.get(node) ?? downError;
      if (error) errors.push(error);
      else others.push(name);
    }
    return new AggregateError(
      errors,
      `no quorum of ${this.quorum} among ${this.nodes.length} nodes: ${errors.map(({ message }) => message).join('; ')}` +
        (others.length > 0 ? `; nothing is known against ${others.join(' and ')}` : ''),
    );
  }

  async #hear(node: RedlockNode, question: (node: RedlockNode) => Promise<Answer>): Promise<void> {
    try {
      this.answers.set(node, await question(node));
    } catch (error) {
      this.failures.set(node, error instanceof Error ? error : new Error(String(error)));
    }
  }
}
