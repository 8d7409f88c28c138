import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { type Contract, FaultProxy, type Holder, SLACK_MS, TemporaryDirectory, timeLimitOf } from '../support/index.js';
import { type Grant, grantsByKey } from '../support/grants.js';
import { loadHistory, type Operation } from '../support/history.js';
import { checkExclusion, checkTokenOrder } from '../support/history-checker.js';
import { startHolder } from './start-holder.js';
import type { FaultTheme } from './fault-theme.js';

/** `LEADER_TERMS=100` for the whole of it. */
const TERMS = Number(process.env.LEADER_TERMS ?? 25);
const PROCESSES = 3;
/** Which the processes stand for side by side. */
const OFFICES = ['o1', 'o2', 'o3', 'o4', 'o5'];
/** The longest that a waiter of whom nothing is heard keeps its place in line. */
const SILENT_WAITER_MS = 5_000;

type Fault = 'kill' | 'freeze' | 'partition';

export const leaders: FaultTheme = {
  title: 'leaders',
  thorough: true,
  declare({ it }, name) {
    it(
      `of ${TERMS} terms no two at once, each with a higher token, a crash leaves nobody for its TTL and a second at most`,
      async (contract) => {
        using directory = new TemporaryDirectory('leaders');
        await new Election(contract, directory.path).run(name);
      },
      TERMS * 4_000 + 120_000,
    );
  },
};

interface Candidate {
  readonly holder: Holder;
  readonly proc: string;
}

/** Processes that stand for the same offices while things happen to them. */
class Election {
  readonly #files: string[] = [];
  readonly #plainFiles: string[] = [];
  readonly #killed = new Set<string>();
  readonly #proxies: FaultProxy[] = [];
  readonly #standing: Candidate[] = [];
  #processes = 0;
  readonly #faults: Fault[];

  constructor(
    private readonly contract: Contract,
    private readonly directory: string,
  ) {
    const { server, boundToConnection = false } = contract.harness;
    this.#faults = server && !boundToConnection ? ['kill', 'freeze', 'partition'] : ['kill', 'freeze'];
  }

  async run(name: string): Promise<void> {
    try {
      const places = Array.from({ length: PROCESSES }, (_, place) => place);
      await Promise.all(places.map((place) => this.#start(place)));
      await Promise.all(places.map((place) => this.#takeTurns(place)));
      await Promise.all(places.map((place) => this.#stand(place)));
      for (let round = 0; round < this.#faults.length || !this.#isEnough; round += 1) {
        this.contract.timeIsUp.throwIfAborted();
        await later(this.contract.processTtlMs);
        await this.#harm(randomInt(PROCESSES), this.#faults[round % this.#faults.length] ?? 'kill');
      }
      await Promise.all(this.#standing.map(({ holder }) => holder.close()));
    } finally {
      await Promise.all(this.#standing.map(({ holder }) => holder.kill()));
      await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    }
    const history = loadHistory(this.#files);
    expect(checkExclusion(history)?.message).toBeUndefined();
    expect(checkTokenOrder(history)?.message).toBeUndefined();
    const changes = changesIn(history);
    for (const { last, next } of changes) expect(next.acquire.token).toBeGreaterThan(last.acquire.token ?? 0n);
    this.#judge(name, changes);
  }

  #judge(name: string, changes: readonly Change[]): void {
    const { processTtlMs, harness } = this.contract;
    const { expiresLateMs = 0, wakesWithinMs } = harness;
    const plain = vacancies(changesIn(loadHistory(this.#plainFiles)).filter(isFailOver));
    const clean = vacancies(changes.filter((change) => change.last.release && isFailOver(change)));
    const crashed = vacancies(changes.filter((change) => this.#isCrash(change)));
    const all = vacancies(changes);
    process.stdout.write(
      `${name}: TTL ${processTtlMs} ms, ${this.#faults.join(', ')}; fail-over after ${clean.length} clean stops ` +
        `${median(clean)} ms, ${plain.length} plain hand-overs ${median(plain)} ms (medians), ` +
        `${crashed.length} crashes ${crashed.at(-1)?.toFixed(0)} ms, anything ${all.at(-1)?.toFixed(0)} ms (longest)\n`,
    );
    const crashBoundMs = processTtlMs + expiresLateMs + timeLimitOf(1_000) + SLACK_MS;
    expect(crashed.length).toBeGreaterThan(0);
    expect(crashed.at(-1)).toTakeLessThan(crashBoundMs);
    // A fault strikes the next in line as well, who is woken in vain.
    expect(all.at(-1)).toTakeLessThan(crashBoundMs + SILENT_WAITER_MS + 2 * wakesWithinMs);
  }

  get #isEnough(): boolean {
    const changes = changesIn(loadHistory(this.#files));
    return changes.length >= TERMS && changes.some((change) => this.#isCrash(change));
  }

  #isCrash({ last }: Change): boolean {
    return !last.release && this.#killed.has(last.acquire.proc);
  }

  /** Has a new process in this place. */
  async #start(place: number): Promise<void> {
    const proxy = this.#faults.includes('partition') ? await this.#proxy(place) : undefined;
    const holder = await startHolder(this.contract, {}, proxy);
    this.#processes += 1;
    this.#standing[place] = { holder, proc: `p${this.#processes}` };
  }

  async #stand(place: number): Promise<void> {
    await this.#tell(place, 'lead', this.#files);
  }

  /** The same under plain locks, to compare with. */
  async #takeTurns(place: number): Promise<void> {
    await this.#tell(place, 'takeTurns', this.#plainFiles);
  }

  async #tell(place: number, what: 'lead' | 'takeTurns', files: string[]): Promise<void> {
    const { holder, proc } = this.#at(place);
    const history = join(this.directory, `${what}-${proc}.jsonl`);
    const { processTtlMs: ttlMs } = this.contract;
    await holder.child.call(what, { keys: OFFICES, ttlMs, history, proc });
    files.push(history);
  }

  #at(place: number): Candidate {
    const candidate = this.#standing[place];
    if (!candidate) throw new Error('there is no process in this place');
    return candidate;
  }

  async #proxy(place: number): Promise<FaultProxy> {
    const { server } = this.contract.harness;
    if (!server) throw new Error('there is no network between this backend and its server');
    this.#proxies[place] ??= await FaultProxy.start(server());
    return this.#proxies[place];
  }

  async #harm(place: number, fault: Fault): Promise<void> {
    const [{ holder, proc }, proxy] = [this.#at(place), this.#proxies[place]];
    const ms = this.contract.processTtlMs * 1.5;
    if (fault === 'kill') {
      await holder.kill();
      this.#killed.add(proc);
      await this.#start(place);
      await this.#stand(place);
    } else if (fault === 'freeze') {
      holder.child.freeze();
      await later(ms);
      holder.child.thaw();
    } else {
      proxy?.pause();
      await later(ms);
      proxy?.resume();
    }
  }
}

interface Change {
  readonly last: Grant;
  readonly next: Grant;
}

/** The changes of all offices, each with one leader after the other. */
function changesIn(history: readonly Operation[]): Change[] {
  return [...grantsByKey(history).values()].flatMap((grants) => {
    const terms = grants.toSorted((a, b) => (a.acquire.ok < b.acquire.ok ? -1 : 1));
    return terms.slice(1).flatMap((next, index) => {
      const last = terms[index];
      return last ? [{ last, next }] : [];
    });
  });
}

/** A process's own next term is none. */
function isFailOver({ last, next }: Change): boolean {
  return last.acquire.proc !== next.acquire.proc;
}

/** In milliseconds, the longest one last. */
function vacancies(changes: readonly Change[]): number[] {
  const lasted = ({ last, next }: Change): number => Number(next.acquire.ok - last.believedUntil) / 1e6;
  return changes.map(lasted).toSorted((a, b) => a - b);
}

function median(sorted: readonly number[]): string {
  return (sorted[Math.floor(sorted.length / 2)] ?? Number.NaN).toFixed(1);
}

/** For as long as processes are left alone, or harmed. */
function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
