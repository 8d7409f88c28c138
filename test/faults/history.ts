import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Contract,
  FaultProxy,
  type Holder,
  isQuickTier,
  RedisServer,
  TemporaryDirectory,
} from '../support/index.js';
import { FencedResource } from '../support/fenced-resource.js';
import { loadHistory, type Operation } from '../support/history.js';
import { ADOPTER } from '../support/harness-hammer.js';
import { checkExclusion, checkResourceOrder, checkTokenOrder } from '../support/history-checker.js';
import { startHolder } from './start-holder.js';
import type { FaultTheme } from './fault-theme.js';

/** `HISTORY_MS=100000 HISTORY_CALLERS=48 HISTORY_KEYS=100` for a soak of some 100,000 grants. */
const RUN_MS = Number(process.env.HISTORY_MS ?? (isQuickTier ? 1_000 : 3_000));
/** Callers of each process. */
const CALLERS = Number(process.env.HISTORY_CALLERS ?? 4);
/** Keys at which two or three callers meet. */
const WARM_KEYS = Number(process.env.HISTORY_KEYS ?? 2);
/** For so many TTLs a process is left alone: where leases are long, who dies keeps the others waiting for long. */
const ALONE_TTLS = [0.4, 1.6] as const;
/** The run of one process, from its start, or from the end of its last one: time for a fault. */
const SHORTEST_RUN_TTLS = 2;
const ENOUGH = { grants: RUN_MS / 100, harmed: Math.min(RUN_MS / 1_000, 100) };
const PROCESSES = 3;
/** One key that everybody wants, and the others. */
const KEYS = ['hot', 'hot', ...Array.from({ length: WARM_KEYS }, (_, index) => `warm-${index + 1}`)];

/** Readers, permits and those who want all of a key. */
const CLAIMS = ['', '~s', '~s', '~s', '~1-3', '~1-3', '~2-3', '~3-3'];

type Fault = 'kill' | 'stop' | 'cut';

const property = 'show no two holders, growing tokens, and a resource that fences';

export const histories: FaultTheme = {
  title: 'histories',
  declare: ({ alone }, name) =>
    alone(
      `of processes that are killed and stopped ${property}`,
      (contract) => stress(name, contract, ['kill', 'stop', 'stop']),
      RUN_MS + 60_000,
    ),
};

/** For `getset`: a process stopped between its look and its write may free the next one's lock. */
export const historiesOfKills: FaultTheme = {
  title: 'histories',
  declare: ({ alone }, name) =>
    alone(`of processes that are killed ${property}`, (contract) => stress(name, contract, ['kill']), RUN_MS + 60_000),
};

/** For backends that keep several holders of a key. */
export const historiesOfShares: FaultTheme = {
  title: 'histories of shares',
  thorough: true,
  declare({ alone, harness }, name) {
    const { server, boundToConnection = false } = harness;
    const faults: Fault[] = server && !boundToConnection ? ['kill', 'stop', 'cut'] : ['kill', 'stop'];
    alone(
      `of readers, permits and others, in processes that suffer ${faults.join(', ')}, ${property}`,
      (contract) => stress(`${name}, shares`, contract, faults, CLAIMS),
      RUN_MS + 60_000,
    );
  },
};

async function stress(
  name: string,
  contract: Contract,
  faults: readonly Fault[],
  claims: readonly string[] = [''],
): Promise<void> {
  using directory = new TemporaryDirectory('histories');
  await using server = await RedisServer.start();
  using resource = new FencedResource(server.url);
  const crowd = new Crowd(contract, directory.path, server.url, claims);
  const history = await crowd.run(RUN_MS, faults);
  const [grants, places] = [grantsIn(history), crowd.files.length];
  const adopted = adoptedIn(history);
  process.stdout.write(`${name}: ${grants} grants, ${adopted} adopted, ${crowd.harmed} faults, ${places} runs\n`);
  expect(adopted > 0).toBe(contract.harness.transfers === true);
  expect(grants).toBeGreaterThanOrEqual(crowd.grants - crowd.harmed);
  expect(checkExclusion(history)?.message).toBeUndefined();
  expect(checkTokenOrder(history)?.message).toBeUndefined();
  const writes = await Promise.all([...new Set(KEYS)].map((key) => resource.writes(key)));
  expect(writes.flat().filter(({ accepted }) => accepted).length).toBeGreaterThan(ENOUGH.grants / 2);
  expect(checkResourceOrder(writes.flat())?.message).toBeUndefined();
}

/** Processes that hammer the same keys while things happen to them. */
class Crowd {
  readonly files: string[] = [];
  harmed = 0;
  /** As counted by those who lived. */
  grants = 0;

  constructor(
    private readonly contract: Contract,
    private readonly directory: string,
    private readonly resource: string,
    private readonly claims: readonly string[],
  ) {}

  /** For so long, and as long after it as they have not done enough: a busy machine takes longer over it. */
  async run(ms: number, faults: readonly Fault[]): Promise<readonly Operation[]> {
    const end = performance.now() + ms;
    const places = await Promise.allSettled(Array.from({ length: PROCESSES }, () => this.#place(end, faults)));
    const history = loadHistory(this.files);
    if (this.contract.timeIsUp.aborted)
      throw new Error(`${grantsIn(history)} grants, ${this.harmed} faults in that time`);
    for (const place of places) if (place.status === 'rejected') throw place.reason;
    return history;
  }

  #isOver(end: number): boolean {
    if (this.contract.timeIsUp.aborted) return true;
    if (performance.now() < end || this.harmed <= ENOUGH.harmed) return false;
    const history = loadHistory(this.files);
    const isAnyMissing = this.contract.harness.transfers === true && adoptedIn(history) === 0;
    return grantsIn(history) > ENOUGH.grants && !isAnyMissing;
  }

  #ttls(count: number): number {
    return Math.ceil(this.contract.harness.shortTtlMs * count);
  }

  /** One process after the other, each until it is killed or all is done: to start one takes a busy machine seconds. */
  async #place(end: number, faults: readonly Fault[]): Promise<void> {
    while (!this.#isOver(end)) {
      await using network = faults.includes('cut') ? await Network.start(this.contract) : undefined;
      await using holder = await startHolder(this.contract, {}, network?.proxy);
      let alive = true;
      while (alive && !this.#isOver(end)) alive = await this.#harm(holder, end, faults, network?.proxy);
    }
  }

  /** While the process hammers, until it is killed or done. Resolves to whether it lives. */
  async #harm(holder: Holder, end: number, faults: readonly Fault[], proxy?: FaultProxy): Promise<boolean> {
    const hammering = this.#hammer(holder, end - performance.now());
    const over = hammering.then(
      () => true,
      () => true,
    );
    let killed = false;
    const [atLeast, atMost] = ALONE_TTLS;
    const leaveAlone = (): Promise<false> => later(randomInt(this.#ttls(atLeast), this.#ttls(atMost)));
    while (!killed && !(await Promise.race([over, leaveAlone()]))) {
      this.harmed += 1;
      const fault = faults[randomInt(faults.length)];
      killed = fault === 'kill';
      if (killed) {
        await holder.kill();
        continue;
      }
      if (fault === 'cut') proxy?.pause();
      else holder.child.freeze();
      await later(randomInt(50, this.#ttls(2)));
      if (fault === 'cut') proxy?.resume();
      else holder.child.thaw();
    }
    if (!killed) this.grants += await hammering;
    return !killed;
  }

  /** Rejects with what goes wrong in the child, also when that is its end. */
  #hammer(holder: Holder, ms: number): Promise<number> {
    const proc = `p${this.files.length}`;
    const history = join(this.directory, `${proc}.jsonl`);
    // Before the child does, which may be killed first.
    writeFileSync(history, '');
    this.files.push(history);
    const { resource, claims } = this;
    return holder.child.call('hammer', {
      keys: KEYS,
      claims,
      ms: Math.max(ms, this.#ttls(SHORTEST_RUN_TTLS)),
      callers: CALLERS,
      transfers: this.contract.harness.transfers === true,
      ttlMs: this.contract.harness.shortTtlMs,
      history,
      proc,
      resource,
    });
  }
}

/** Between one process and the server. */
class Network implements AsyncDisposable {
  private constructor(readonly proxy: FaultProxy) {}

  static async start({ harness }: Contract): Promise<Network> {
    if (!harness.server) throw new Error('there is no network between this backend and its server');
    return new Network(await FaultProxy.start(harness.server()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.proxy.close();
  }
}

function grantsIn(history: readonly Operation[]): number {
  return history.filter(({ op, ok }) => op === 'acquire' && ok !== undefined).length;
}

function adoptedIn(history: readonly Operation[]): number {
  return grantsIn(history.filter(({ owner }) => owner.startsWith(ADOPTER)));
}

/** For as long as a process is left alone, or stopped. */
function later(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}
