import { Random } from '../../support/random.js';
import type { Moment, Schedule, Step } from './moments.js';
import { NodesPlacement } from './nodes-placement.js';

const STEPS = 10;
const MOST_IN_LINE = 5;
const LONGEST = 6;

/** What the clients of one key want. */
const MUTEX = [''];
const READERS = ['', '~s', '~s'];
const MIXED = ['', '~s', '~1-2', '~2-3', '~1-3', '~2-5', '~4-5'];

/** What clients of one key do, as the seed has it, and what must come of it by the rule of the nodes. */
export function scheduleOf(seed: number): Schedule {
  const random = new Random(seed + 1);
  const isMixed = seed % 4 === 0;
  const hasSilence = seed % 8 === 0;
  const kinds = isMixed ? MIXED : random.oneOf([MUTEX, READERS, READERS, permitsOf(random), permitsOf(random)]);
  const writer = new ScheduleWriter(seed, random, kinds, { isMixed, hasSilence });
  while (writer.moments.length < STEPS) writer.addTurn();
  return { seed, isMixed, hasSilence, moments: writer.moments };
}

/** Several weights of one limit, and those who want all. */
function permitsOf(random: Random): string[] {
  const limit = 1 + random.below(4);
  const weights = [1, 1, 1 + random.below(limit), limit].map((wanted) => `~${wanted}-${limit}`);
  return random.chance(0.5) ? weights : ['', ...weights];
}

class ScheduleWriter {
  readonly moments: Moment[] = [];
  readonly #nodes = new NodesPlacement();
  readonly #silent = new Set<string>();
  #came = 0;

  constructor(
    private readonly seed: number,
    private readonly random: Random,
    private readonly kinds: readonly string[],
    private readonly ways: Pick<Schedule, 'isMixed' | 'hasSilence'>,
  ) {}

  /** A step, and the questions of those who are told, or see by their clocks, that they may get in. */
  addTurn(): void {
    const step = this.#step();
    const isEnd = step.does === 'die' || step.does === 'pass' || step.does === 'revoke';
    const answer = this.#nodes.take(step);
    const asking = this.#shuffled(isEnd ? this.#unconfirmed() : this.#letIn());
    this.#add(step, answer, isEnd && asking.length > 0);
    for (const [at, owner] of asking.entries()) {
      const question = { does: 'ask', owner, lasts: this.#lasts(), waits: true } as const;
      this.#add(question, this.#nodes.take(question), isEnd && at < asking.length - 1);
    }
  }

  #add(step: Step, answer: boolean | undefined, isOpen: boolean): void {
    this.moments.push({ step, answer, holdings: this.#nodes.holdings, isOpen });
    if (step.does === 'silence') this.#silent.add(step.owner);
    if (step.does === 'ask') this.#silent.delete(step.owner);
  }

  #step(): Step {
    const { random } = this;
    const { owners, waiters } = this.#nodes;
    const arrival = { does: 'ask', owner: this.#newOwner(), lasts: this.#lasts(), waits: random.chance(0.8) } as const;
    if (owners.length === 0 || (owners.length < MOST_IN_LINE && random.chance(0.45))) return arrival;
    const owner = random.oneOf(owners);
    const chance = random.fraction();
    if (this.ways.hasSilence && chance < 0.2) return { does: 'silence', owner };
    if (chance < 0.4) return { does: 'release', owner };
    if (chance < 0.5) return { does: 'renew', owner, lasts: this.#lasts() };
    if (chance < 0.65) return { does: 'ask', owner, lasts: this.#lasts(), waits: true };
    if (chance < 0.75) return { does: 'release', owner: random.oneOf([...waiters, arrival.owner]) };
    if (chance < 0.87 || this.ways.isMixed) return { does: 'die', owner };
    return chance < 0.97 ? { does: 'pass', units: this.#lasts() } : { does: 'revoke' };
  }

  #newOwner(): string {
    this.#came += 1;
    return `${this.seed}.${this.#came}${this.random.oneOf(this.kinds)}`;
  }

  #lasts(): number {
    return 1 + this.random.below(LONGEST);
  }

  /** With several limits a placement may not know yet who gets in: all may ask. */
  #letIn(): readonly string[] {
    if (this.ways.isMixed) return this.#nodes.owners.filter((owner) => !this.#silent.has(owner));
    return this.#nodes.holdings.filter(({ left }) => left === undefined).map(({ owner }) => owner);
  }

  #unconfirmed(): readonly string[] {
    return this.ways.isMixed ? this.#letIn() : [...this.#letIn(), ...this.#nodes.waiters];
  }

  #shuffled(owners: readonly string[]): readonly string[] {
    return owners
      .map((owner) => ({ owner, at: this.random.fraction() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ owner }) => owner);
  }
}
