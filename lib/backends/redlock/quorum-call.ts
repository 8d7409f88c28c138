/** A node that can be asked. */
export interface Asked {
  readonly down: boolean;
}

export function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}

/**
 * The answers of several nodes to one question so far. A minority that is known to be down is not waited for, though its
 * answers count. When too few are left for a quorum, all are waited for: the news may be old.
 */
export class QuorumCall<Node extends Asked, Answer> {
  readonly answers = new Map<Node, Answer>();
  readonly failures = new Map<Node, Error>();
  readonly quorum: number;
  /** How many may refuse or fail, and a quorum is left. */
  readonly spare: number;
  readonly #given: ReadonlySet<Node>;
  readonly #heard = new Map<Node, Promise<void>>();

  constructor(readonly nodes: readonly Node[]) {
    this.quorum = majorityOf(nodes.length);
    this.spare = nodes.length - this.quorum;
    const down = nodes.filter((node) => node.down);
    this.#given = new Set(down.length > this.spare ? [] : down);
  }

  /** How many are expected to answer still. */
  get waiting(): number {
    return this.nodes.filter((node) => !this.#settled(node) && !this.#given.has(node)).length;
  }

  /** How many failed, or are taken to fail. */
  get failed(): number {
    return this.nodes.length - this.answers.size - this.waiting;
  }

  count(wanted: (answer: Answer) => boolean): number {
    let count = 0;
    for (const answer of this.answers.values()) if (wanted(answer)) count += 1;
    return count;
  }

  /** Resolves when the node has answered or failed, which may be long after the call is decided. */
  async heardOf(node: Node): Promise<void> {
    await this.#heard.get(node);
  }

  /** `then`: after each answer. */
  put(question: (node: Node) => Promise<Answer>, then: () => void): void {
    for (const node of this.nodes) this.#heard.set(node, this.#hear(node, question, then));
  }

  async #hear(node: Node, question: (node: Node) => Promise<Answer>, then: () => void): Promise<void> {
    try {
      this.answers.set(node, await question(node));
    } catch (error) {
      this.failures.set(node, error instanceof Error ? error : new Error(String(error)));
    }
    then();
  }

  #settled(node: Node): boolean {
    return this.answers.has(node) || this.failures.has(node);
  }
}

/** Asks all nodes at once. Resolves as soon as the call is decided, or when no more answers are expected. */
export function ask<Node extends Asked, Answer>(
  nodes: readonly Node[],
  question: (node: Node) => Promise<Answer>,
  decided: (call: QuorumCall<Node, Answer>) => boolean,
): Promise<QuorumCall<Node, Answer>> {
  const call = new QuorumCall<Node, Answer>(nodes);
  return new Promise((resolve) => {
    call.put(question, () => {
      if (call.waiting === 0 || decided(call)) resolve(call);
    });
  });
}
