import { askRedis } from '../test/servers/ask-redis.js';
import { type Child, spawnChild } from '../test/support/processes.js';
import type { Connection } from '../test/support/harness-connection.js';
import type { Contestant, Terms } from './contestants/contestant.js';
import { sum } from './measures.js';
import { FaultProxy } from '../test/support/fault-proxy.js';
import { type BackendName, competitionOf, type PrivateServers } from './competitions.js';
import { countRequests } from './request-count.js';
import type { Worker } from './worker.js';

export type WorkerProcess = Child<Worker>;

/** Milliseconds that a server has used since its start; `NaN` where it is not Redis. */
export interface ServerClock {
  /** Processor time. */
  readonly cpuMs: number;
  /** Time within scripts, and within the commands that the contestant sends beside them; `NaN` where these are unknown. */
  readonly commandMs: number;
}

const DEFAULT_TERMS: Terms = { ttlMs: 15_000, waitMs: 15_000 };

/** Servers of one backend. Starts processes of contestants that use them. */
export class Arena implements AsyncDisposable {
  private constructor(
    readonly backend: BackendName,
    private readonly servers: PrivateServers,
  ) {}

  /**
   * Starts the servers of a backend.
   * @param delayMs milliseconds that a request, and its reply, are under way
   */
  static async open(backend: BackendName, delayMs: number): Promise<Arena> {
    const servers = await competitionOf(backend).start();
    return new Arena(backend, delayMs === 0 ? servers : await delayRequests(servers, delayMs));
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

  /** @param contestant contestant that has the server to itself meanwhile */
  async readServerClock({ commandsBesideScripts }: Contestant): Promise<ServerClock> {
    const { redisUrl } = this.servers;
    if (redisUrl === undefined) return { cpuMs: NaN, commandMs: NaN };
    const info = await askRedis(Number(new URL(redisUrl).port), 'INFO all');
    const sumOf = (pattern: RegExp): number => sum(Array.from(info.matchAll(pattern), ([, used]) => Number(used)));
    const usecOf = (command: string): number => sumOf(new RegExp(`^cmdstat_${command}:calls=\\d+,usec=(\\d+)`, 'gmu'));
    return {
      cpuMs: sumOf(/^used_cpu_(?:sys|user):([\d.]+)/gmu) * 1_000,
      commandMs: commandsBesideScripts ? sum(['eval', 'evalsha', ...commandsBesideScripts].map(usecOf)) / 1_000 : NaN,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.servers.stop();
  }
}

/** Has a proxy delay all that clients and the Redis server send each other. */
async function delayRequests(servers: PrivateServers, delayMs: number): Promise<PrivateServers> {
  const { connection, redisUrl } = servers;
  if (redisUrl === undefined) throw new Error('only requests to one Redis server can be delayed');
  const proxy = await FaultProxy.start({ port: Number(new URL(redisUrl).port) });
  proxy.delay(delayMs);
  const stop = async (): Promise<void> => {
    await proxy.close();
    await servers.stop();
  };
  return { ...servers, connection: { ...connection, url: `redis://127.0.0.1:${proxy.port}` } as Connection, stop };
}
