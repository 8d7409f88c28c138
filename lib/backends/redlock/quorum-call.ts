/** Whoever can be asked, and is known to be down or not. */
export interface Asked {
  readonly down: boolean;
}

export function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}

/**
 * What several nodes have said to one question so far. Of a minority that is known to be down no answer is expected, though
 * one that comes counts: nobody waits for the dead. When so many are down that no quorum is left, all are waited for, since
 * the news may be old.
 */
export class QuorumCall<Node extends Asked, Answer> {
  readonly answers = new Map<Node, Answer>();
  readonly failures = new Map<Node, Error>();
  readonly quorum: number;
  /** How many may say no, or nothing, without deciding the matter. */
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

/** Asks all nodes at once. Resolves as soon as what has come in decides the matter, or when nothing more is expected. */
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
