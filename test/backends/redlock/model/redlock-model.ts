import { Columns } from './columns.js';
import type { Scheme } from './schemes.js';
import type { Model, Visit } from './search.js';

export interface World {
  readonly scheme: Scheme;
  /**
   * `tokens`: whoever began after another had the lease gets a greater token, and no token is given twice. Leases end at any
   * moment, which stands for every pause, every clock and every release. `exclusion`: no two believe in a lease at one time,
   * when `leasesEnd` as said.
   */
  readonly property: 'tokens' | 'exclusion';
  /** `late`: not before their owner has stopped believing in them, as with clocks that run at about the same rate. */
  readonly leasesEnd: 'any time' | 'late';
  readonly nodes: number;
  /** Each by the number of its owner, an acquisition. Those of one owner are its attempts: each begins when the one before is refused. */
  readonly candidates: readonly number[];
  /** The greatest token that anybody proposes; everybody may propose any. */
  readonly proposals: number;
  /** How far each node's clock goes, by itself and at its own pace. */
  readonly ticks: number;
  /** Whether nodes lose all they know, any of them, at any moment, as often as they like. */
  readonly losses: boolean;
  /** Whether a node that lost everything waits until all that it forgot is over. */
  readonly quarantine: boolean;
}

/** A candidate's knowledge of itself. `floor`: the greatest token of a lease that somebody had when it began. */
interface Candidate {
  readonly phase: (typeof PHASES)[number];
  readonly proposal: number;
  readonly floor: number;
}

export interface State {
  readonly columns: readonly number[];
  readonly candidates: readonly Candidate[];
}

/** `refused`: gave up, and takes back what it may have, at any time later. `over`: left, or believes no more. */
const PHASES = ['new', 'asking', 'inside', 'refused', 'over'] as const;
/** For random walks: so many requests come to each other event, and so many for the present proposal to each for another. */
const REQUESTS_TO_OTHERS = 9;
const PRESENT_TO_OTHERS = 9;
const NEW: Candidate = { phase: 'new', proposal: 0, floor: 0 };

/**
 * Requests may be lost, arrive at any time later, in any order and any number of times; replies may be lost. That stands for all
 * delays, also those that differ by node and by client. Nodes are all alike, and owners begin in the order of their numbers,
 * because they are alike too.
 */
export class RedlockModel implements Model<State> {
  readonly initial: State;
  readonly #columns: Columns;
  readonly #quorum: number;

  constructor(private readonly world: World) {
    const candidates = world.candidates.map((owner, place) => ({ owner, attempt: place + 1 }));
    this.#columns = new Columns(world.scheme, candidates);
    this.#quorum = Math.floor(world.nodes / 2) + 1;
    this.initial = {
      columns: Array.from({ length: world.nodes }, () => this.#columns.empty()),
      candidates: world.candidates.map(() => NEW),
    };
  }

  key({ columns, candidates }: State): string {
    const codes = columns.toSorted((a, b) => a - b);
    for (const { phase, proposal, floor } of candidates)
      codes.push(PHASES.indexOf(phase) * 256 + proposal * 16 + floor);
    return String.fromCharCode(...codes);
  }

  parse(key: string): State {
    const { nodes } = this.world;
    const columns: number[] = [];
    const candidates: Candidate[] = [];
    for (let place = 0; place < key.length; place += 1) {
      const code = key.charCodeAt(place);
      if (place < nodes) columns.push(code);
      else candidates.push({ phase: PHASES[code >> 8] ?? 'over', proposal: (code >> 4) & 15, floor: code & 15 });
    }
    return { columns, candidates };
  }

  steps(state: State, visit: Visit<State>): void {
    for (let node = 0; node < state.columns.length; node += 1) {
      this.#onNode(state, node, visit);
      for (const candidate of this.#asking(state)) this.#onRequests(state, node, candidate, visit);
    }
    if (this.world.property === 'exclusion') this.#onBeliefs(state, visit);
  }

  /** The events of one node: a request for the present proposal, most of the time, so that there are leases. */
  someSteps(state: State, visit: Visit<State>, random: (below: number) => number): void {
    const node = random(state.columns.length);
    if (random(REQUESTS_TO_OTHERS + 1) === 0) return this.#onNode(state, node, visit);
    const asking = this.#asking(state);
    const candidate = asking[random(asking.length)] ?? 0;
    const { phase, proposal } = state.candidates[candidate] ?? NEW;
    if (phase === 'new' || random(PRESENT_TO_OTHERS + 1) === 0) this.#onRequests(state, node, candidate, visit);
    else this.#onRequest(state, node, candidate, proposal, visit);
  }

  #onNode(state: State, at: number, visit: Visit<State>): void {
    const { world } = this;
    const column = state.columns[at] ?? 0;
    const { node } = this.#columns.get(column);
    const become = (next: number): State => ({ ...state, columns: state.columns.with(at, next) });
    if (node.owner !== null && this.#mayEnd(state, node.attempt - 1)) {
      visit(become(this.#columns.endLease(column)), () => `the lease of ${node.attempt} ends on ${nameOf(at)}`);
    }
    for (const [candidate, { phase }] of state.candidates.entries()) {
      const freed = phase === 'refused' ? this.#columns.takeBack(column, candidate) : column;
      if (freed !== column) visit(become(freed), () => `${candidate + 1} takes back what it has on ${nameOf(at)}`);
    }
    if (world.losses) {
      const forgotten = world.quarantine ? this.#believers(state) : 0;
      visit(become(this.#columns.loseAll(column, forgotten)), () => `${nameOf(at)} loses all it knows`);
    }
    if (node.clock < world.ticks) visit(become(this.#columns.tick(column)), () => `the clock of ${nameOf(at)} goes on`);
  }

  /** The places of the candidates that may ask: those that have begun, the next attempt of each owner, and the next owner. */
  #asking({ candidates }: State): number[] {
    const { candidates: owners } = this.world;
    const begun = (place: number): boolean => candidates[place]?.phase !== 'new';
    return owners.flatMap((owner, place) => {
      const before = owners.lastIndexOf(owner, place - 1);
      const isFirst = place === 0 || before === -1;
      const mayBegin = isFirst
        ? owners.slice(0, place).every((other, earlier) => begun(earlier) || owners.indexOf(other) < earlier)
        : candidates[before]?.phase === 'refused';
      return begun(place) || mayBegin ? [place] : [];
    });
  }

  /** Every request that may arrive at the node: the candidate's present proposal, an earlier one, or its next. */
  #onRequests(state: State, at: number, candidate: number, visit: Visit<State>): void {
    const { proposals } = this.world;
    const { phase, proposal } = state.candidates[candidate] ?? NEW;
    const last = phase === 'new' || phase === 'asking' ? proposals : proposal;
    for (let token = 1; token <= last; token += 1) this.#onRequest(state, at, candidate, token, visit);
  }

  #onRequest(before: State, at: number, candidate: number, token: number, visit: Visit<State>): void {
    const state = this.#proposed(before, candidate, token);
    const column = state.columns[at] ?? 0;
    if ((this.#columns.get(column).quarantine & this.#believers(before)) !== 0) return;
    const unheard = this.#columns.request(column, candidate, token, false);
    const request = (): string => `${candidate + 1} asks ${nameOf(at)} for ${token}`;
    if (unheard !== column || state !== before) {
      visit({ ...state, columns: state.columns.with(at, unheard) }, () => `${request()}, and hears nothing`);
    }
    const current = state.candidates[candidate];
    if (current?.phase !== 'asking' || token !== current.proposal) return;
    const heard = this.#columns.request(column, candidate, token, true);
    const vote = this.#columns.get(heard).votes[candidate];
    if (vote === null || vote === undefined) return;
    this.#count(
      { ...state, columns: state.columns.with(at, heard) },
      candidate,
      () => `${request()}, and gets it`,
      visit,
    );
  }

  /** A first proposal, or a greater one than before: then the votes for the former are given up. */
  #proposed(state: State, candidate: number, token: number): State {
    const { phase, proposal, floor } = state.candidates[candidate] ?? NEW;
    if (phase !== 'new' && (phase !== 'asking' || token <= proposal)) return state;
    const highest = this.world.property === 'tokens' ? Math.max(0, ...this.#tokens(state)) : 0;
    const next: Candidate = { phase: 'asking', proposal: token, floor: phase === 'new' ? highest : floor };
    const mixes = this.world.scheme.mixesRounds === true;
    const columns = mixes ? state.columns : state.columns.map((column) => this.#columns.forget(column, candidate));
    return { columns, candidates: state.candidates.with(candidate, next) };
  }

  /** With the votes of a quorum the candidate is inside at once: to wait would only excuse more. */
  #count(state: State, candidate: number, event: () => string, visit: Visit<State>): void {
    const votes = state.columns.flatMap((column) => this.#columns.get(column).votes[candidate] ?? []);
    if (votes.length < this.#quorum) return visit(state, event);
    const token = this.world.scheme.tokenOf(votes);
    const { floor } = state.candidates[candidate] ?? NEW;
    const inside: Candidate = { phase: 'inside', proposal: token, floor: 0 };
    const next: State = {
      columns: state.columns.map((column) => this.#columns.forget(column, candidate)),
      candidates: state.candidates.with(candidate, inside),
    };
    visit(next, () => `${event()}: has the lease, with token ${token}`, this.#wrong(state, token, floor));
  }

  #wrong(state: State, token: number, floor: number): string | undefined {
    if (this.world.property === 'exclusion') {
      const others = this.#having(state, 'inside');
      return others.length > 0 ? `${others.join(' and ')} believes in it too` : undefined;
    }
    if (this.#tokens(state).includes(token)) return `token ${token} is given twice`;
    return token <= floor ? `an earlier lease had token ${floor}` : undefined;
  }

  #onBeliefs(state: State, visit: Visit<State>): void {
    for (const [candidate, { phase, proposal }] of state.candidates.entries()) {
      if (phase !== 'asking' && phase !== 'inside') continue;
      const columns = state.columns.map((column) => this.#columns.forget(column, candidate));
      const [next, what] =
        phase === 'asking' ? (['refused', 'is refused'] as const) : (['over', 'leaves, or believes no more'] as const);
      const candidates = state.candidates.with(candidate, { phase: next, proposal, floor: 0 });
      visit({ columns, candidates }, () => `${candidate + 1} ${what}`);
    }
  }

  #mayEnd({ candidates }: State, candidate: number): boolean {
    const phase = candidates[candidate]?.phase;
    return this.world.leasesEnd === 'any time' || phase === 'over' || phase === 'refused';
  }

  /** A bit for each candidate that has a lease, or may count itself to one. */
  #believers({ candidates }: State): number {
    return candidates.reduce(
      (bits, { phase }, place) => (phase === 'asking' || phase === 'inside' ? bits | (1 << place) : bits),
      0,
    );
  }

  #having({ candidates }: State, phase: Candidate['phase']): number[] {
    return candidates.flatMap((candidate, place) => (candidate.phase === phase ? [place + 1] : []));
  }

  /** The tokens of all leases so far; in the world of tokens nobody leaves. */
  #tokens({ candidates }: State): number[] {
    return candidates.flatMap(({ phase, proposal }) => (phase === 'inside' ? [proposal] : []));
  }
}

function nameOf(node: number): string {
  return String.fromCharCode('A'.charCodeAt(0) + node);
}
