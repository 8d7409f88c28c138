import { askRedis } from '../test/servers/ask-redis.js';
import { type Child, spawnChild } from '../test/support/processes.js';
import type { Contestant, Terms } from './contestants/contestant.js';
import { sum } from './measures.js';
import { type BackendName, competitionOf, type PrivateServers } from './competitions.js';
import { countRequests } from './request-count.js';
import type { Worker } from './worker.js';

export type WorkerProcess = Child<Worker>;

const DEFAULT_TERMS: Terms = { ttlMs: 15_000, waitMs: 15_000 };

/** Servers of one backend. Starts processes of contestants that use them. */
export class Arena implements AsyncDisposable {
  private constructor(
    readonly backend: BackendName,
    private readonly servers: PrivateServers,
  ) {}

  static async open(backend: BackendName): Promise<Arena> {
    return new Arena(backend, await competitionOf(backend).start());
  }

  /** Whether requests to the servers can be counted: only where there is one Redis server. */
  get canCountRequests(): boolean {
    return this.servers.redisUrl !== undefined;
  }

  /** Runs `work` with fresh processes of a contestant, and kills them afterwards. */
  async runWithWorkers<T>(
    contestant: Contestant,
    processes: number,
    work: (workers: readonly WorkerProcess[]) => Promise<T>,
    { skipsWarmUp = false, ...terms }: Partial<Terms> & { readonly skipsWarmUp?: boolean } = {},
  ): Promise<T> {
    const file = new URL('worker.ts', import.meta.url);
    const workers = await Promise.all(
      Array.from({ length: processes }, () => spawnChild<Worker>(file, { nodeArgs: ['--max-old-space-size=4096'] })),
    );
    try {
      const { connection } = this.servers;
      const assignment = { backend: this.backend, contestant: contestant.name, connection, skipsWarmUp };
      await Promise.all(
        workers.map((each) => each.call('connect', { ...assignment, terms: { ...DEFAULT_TERMS, ...terms } })),
      );
      return await work(workers);
    } finally {
      await Promise.all(workers.map((worker) => worker.kill()));
    }
  }

  /** Counts the requests that all clients send during `work`. */
  countRequestsDuring(work: () => Promise<unknown>): Promise<number> {
    const { redisUrl } = this.servers;
    if (redisUrl === undefined) throw new Error(`requests to ${this.backend} are not counted`);
    return countRequests(redisUrl, work);
  }

  /**
   * Returns the milliseconds of processor time that the server has used since its start; `NaN` where it is not Redis.
   */
  async readServerCpuMs(): Promise<number> {
    const { redisUrl } = this.servers;
    if (redisUrl === undefined) return NaN;
    const used = (await askRedis(Number(new URL(redisUrl).port), 'INFO cpu')).matchAll(
      /^used_cpu_(?:sys|user):([\d.]+)/gmu,
    );
    return sum(Array.from(used, ([, seconds]) => Number(seconds) * 1_000));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.servers.stop();
  }
}
