import { type Candidate, EMPTY, free, type NodeState } from './node.js';
import type { Scheme } from './schemes.js';

/** One node, and what each candidate has counted of its votes. */
export interface Column {
  readonly node: NodeState;
  readonly votes: readonly (number | null)[];
  /** After a loss: the candidates that might still believe in a lease which it forgot. As long as one does, it does not vote. */
  readonly quarantine: number;
}

/** The events of a column; with whom and with what is in the multiple of `KINDS`. */
const [END, LOSE, TICK, HEARD, UNHEARD, FORGET, TAKE_BACK, KINDS] = [0, 1, 2, 3, 4, 5, 6, 7] as const;

/**
 * All columns that were ever seen, by number, and where each leads. Few are possible, so each question is worked out once, and
 * a state of the model is a handful of numbers.
 */
export class Columns {
  readonly #all: Column[] = [];
  readonly #numbers = new Map<string, number>();
  /** For each kind of event, where it leads from each column. */
  readonly #ways: (number | undefined)[][] = [];

  constructor(
    private readonly scheme: Scheme,
    private readonly candidates: readonly Candidate[],
  ) {}

  get(number: number): Column {
    const column = this.#all[number];
    if (!column) throw new Error(`there is no column ${number}`);
    return column;
  }

  /** A node that has never been asked. */
  empty(): number {
    return this.#number({ node: EMPTY, votes: this.candidates.map(() => null), quarantine: 0 });
  }

  /** The node gets a request. `counted`: the candidate hears of its vote, and counts it. */
  request(from: number, candidate: number, proposal: number, counted: boolean): number {
    const kind = KINDS * (1 + candidate + this.candidates.length * proposal) + (counted ? HEARD : UNHEARD);
    return this.#way(kind, from, (column) => {
      const { node, vote } = this.scheme.vote(column.node, this.#candidate(candidate), proposal);
      return { ...column, node, votes: counted ? column.votes.with(candidate, vote) : column.votes };
    });
  }

  /** The candidate forgets this node's vote. */
  forget(from: number, candidate: number): number {
    return this.#way(KINDS * (1 + candidate) + FORGET, from, (column) => ({
      ...column,
      votes: column.votes.with(candidate, null),
    }));
  }

  endLease(from: number): number {
    return this.#way(END, from, (column) => ({ ...column, node: free(column.node) }));
  }

  takeBack(from: number, candidate: number): number {
    return this.#way(KINDS * (1 + candidate) + TAKE_BACK, from, (column) => ({
      ...column,
      node: this.scheme.takeBack(column.node, this.#candidate(candidate)),
    }));
  }

  loseAll(from: number, quarantine: number): number {
    return this.#way(KINDS * quarantine + LOSE, from, (column) => ({
      ...column,
      node: { ...EMPTY, clock: column.node.clock },
      quarantine,
    }));
  }

  tick(from: number): number {
    return this.#way(TICK, from, (column) => ({ ...column, node: { ...column.node, clock: column.node.clock + 1 } }));
  }

  #candidate(place: number): Candidate {
    const candidate = this.candidates[place];
    if (!candidate) throw new Error(`there is no candidate ${place}`);
    return candidate;
  }

  #way(kind: number, from: number, step: (column: Column) => Column): number {
    const ways = (this.#ways[kind] ??= []);
    return (ways[from] ??= this.#number(step(this.get(from))));
  }

  #number(column: Column): number {
    const { node, votes, quarantine } = column;
    const key = [node.owner, node.attempt, node.fence, node.since, node.clock, quarantine, ...votes].join();
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#all.push(column) - 1;
      this.#numbers.set(key, number);
    }
    return number;
  }
}
