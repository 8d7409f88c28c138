import { expect } from '@jest/globals';
import { randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Contract, SLACK_MS } from '../conformance/contract.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { type Grant, grantsByKey } from '../support/grants.js';
import { Holder } from '../support/harness-holder.js';
import { loadHistory } from '../support/history.js';
import { checkExclusion, checkTokenOrder } from '../support/history-checker.js';
import type { FaultTheme } from './fault-theme.js';

const TERMS = 100;
const PROCESSES = 3;
/** Which the processes stand for side by side. */
const OFFICES = ['o1', 'o2', 'o3', 'o4', 'o5'];
const LONGEST_TERM_MS = 60;

type Fault = 'kill' | 'freeze' | 'partition';

export const leaders: FaultTheme = {
  title: 'leaders',
  declare({ alone }, name) {
    alone(
      `of ${TERMS} terms no two at once, each with a higher token, and nobody for longer than after a crash`,
      async (contract) => {
        const directory = await mkdtemp(join(tmpdir(), 'leaders-'));
        try {
          await new Election(contract, directory).run(name);
        } finally {
          await rm(directory, { recursive: true });
        }
      },
      90_000,
    );
  },
};

/** Processes that stand for the same offices while things happen to them. */
class Election {
  readonly #files: string[] = [];
  readonly #proxies: FaultProxy[] = [];
  readonly #standing: Holder[] = [];
  readonly #faults: Fault[];

  constructor(
    private readonly contract: Contract,
    private readonly directory: string,
  ) {
    const { server, boundToConnection = false } = contract.harness;
    this.#faults = server && !boundToConnection ? ['kill', 'freeze', 'partition'] : ['kill', 'freeze'];
  }

  async run(name: string): Promise<void> {
    const { processTtlMs, harness } = this.contract;
    try {
      await Promise.all(Array.from({ length: PROCESSES }, (_, place) => this.#stand(place)));
      for (let round = 0; round < this.#faults.length || this.#terms < TERMS; round += 1) {
        await later(processTtlMs);
        await this.#harm(randomInt(PROCESSES), this.#faults[round % this.#faults.length] ?? 'kill');
      }
      await Promise.all(this.#standing.map((holder) => holder.close()));
    } finally {
      await Promise.all(this.#standing.map((holder) => holder.kill()));
      await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    }
    const history = loadHistory(this.#files);
    expect(checkExclusion(history)?.message).toBeUndefined();
    expect(checkTokenOrder(history)?.message).toBeUndefined();
    const terms = [...grantsByKey(history).values()].map((grants) => inOrder(grants));
    for (const { tokens } of terms) expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => (a < b ? -1 : 1)));
    const vacant = terms.flatMap(({ vacantMs }) => vacantMs).toSorted((a, b) => a - b);
    const { expiresLateMs = 0, wakesWithinMs } = harness;
    const median = vacant[Math.floor(vacant.length / 2)] ?? 0;
    const longest = vacant.at(-1) ?? 0;
    process.stdout.write(
      `${name}: ${vacant.length} changes of leader, ${this.#faults.join(', ')}: vacant for ${median.toFixed(1)} ms (median), ` +
        `${longest.toFixed(0)} ms (longest), TTL ${processTtlMs} ms\n`,
    );
    expect(longest).toBeLessThan(processTtlMs + expiresLateMs + wakesWithinMs + 1_000 + SLACK_MS);
  }

  get #terms(): number {
    return [...grantsByKey(loadHistory(this.#files)).values()].flat().length;
  }

  /** Has a new process in this place. */
  async #stand(place: number): Promise<void> {
    const { harness, processTtlMs: ttlMs } = this.contract;
    const proxy = this.#faults.includes('partition') ? await this.#proxy(place) : undefined;
    const connection = harness.connection?.(proxy);
    if (!connection) throw new Error('no other process can connect to this backend');
    const holder = await Holder.start(connection);
    this.#standing[place] = holder;
    const proc = `p${this.#files.length}`;
    const history = join(this.directory, `${proc}.jsonl`);
    await holder.child.call('lead', { keys: OFFICES, ttlMs, longestTermMs: LONGEST_TERM_MS, history, proc });
    this.#files.push(history);
  }

  async #proxy(place: number): Promise<FaultProxy> {
    const { server } = this.contract.harness;
    if (!server) throw new Error('there is no network between this backend and its server');
    this.#proxies[place] ??= await FaultProxy.start(server());
    return this.#proxies[place];
  }

  async #harm(place: number, fault: Fault): Promise<void> {
    const [holder, proxy] = [this.#standing[place], this.#proxies[place]];
    const ms = this.contract.processTtlMs * 1.5;
    if (fault === 'kill') {
      await holder?.kill();
      await this.#stand(place);
    } else if (fault === 'freeze') {
      holder?.child.freeze();
      await later(ms);
      holder?.child.thaw();
    } else {
      proxy?.pause();
      await later(ms);
      proxy?.resume();
    }
  }
}

/** One office's terms. */
function inOrder(grants: readonly Grant[]): { readonly tokens: bigint[]; readonly vacantMs: number[] } {
  const terms = grants.toSorted((a, b) => (a.acquire.ok < b.acquire.ok ? -1 : 1));
  const vacantMs = terms.slice(1).map(({ acquire }, index) => {
    const end = terms[index]?.believedUntil ?? acquire.ok;
    return Number(acquire.ok - end) / 1e6;
  });
  return { tokens: terms.map(({ acquire }) => acquire.token ?? 0n), vacantMs };
}

/** For as long as processes are left alone, or harmed. */
function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
