import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { askRedis, eventually, freePort, RedisServer } from '../support/index.js';
import { MEMORY_DIR } from './memory-dir.js';
import { OwnServer } from './own-server.js';
import { ServerProcess } from './server-process.js';

export interface RedisSentinelsOptions {
  /** @default 1 */
  readonly replicas?: number;
  /** After how long a silent master is taken for dead. @default 500 */
  readonly downAfterMs?: number;
  /** As for `RedisServer`. @default false */
  readonly persistent?: boolean;
  /** Further arguments of each redis-server. */
  readonly args?: readonly string[];
}

const SENTINELS = 3;
/** A replica is in step within milliseconds this way. */
const QUICK = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];

/** A master, its replicas, and three Sentinels that watch over them and agree by two to one. */
export class RedisSentinels {
  /** The name of the master among the Sentinels, whichever server that is. */
  readonly name = 'locks';

  private constructor(
    /** The first was the master at the start. */
    readonly servers: readonly RedisServer[],
    readonly sentinels: readonly Sentinel[],
  ) {}

  /** Resolves when the replicas are in step and the Sentinels know them and each other: a failover is possible from now on. */
  static async start(options: RedisSentinelsOptions = {}): Promise<RedisSentinels> {
    const { replicas = 1, downAfterMs = 500, persistent = false, args = [] } = options;
    const master = await RedisServer.start({ persistent, args: [...QUICK, ...args] });
    const following = ['--replicaof', '127.0.0.1', String(master.port)];
    const followers = await Promise.all(
      Array.from({ length: replicas }, () =>
        RedisServer.start({ persistent, args: [...QUICK, ...following, ...args] }),
      ),
    );
    await Promise.all(followers.map(inStep));
    const sentinels = await Promise.all(
      Array.from({ length: SENTINELS }, () => Sentinel.start('locks', master.port, downAfterMs)),
    );
    const all = new RedisSentinels([master, ...followers], sentinels);
    const expected = new RegExp(`status=ok,.*slaves=${replicas},sentinels=${SENTINELS}\\b`, 'u');
    await eventually(async () => (await all.#reports()).every((report) => expected.test(report)), {
      withinMs: 15_000,
      everyMs: 20,
    });
    return all;
  }

  get addresses(): { readonly host: string; readonly port: number }[] {
    return this.sentinels.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** Whom most Sentinels call the master now. */
  async master(): Promise<RedisServer> {
    const reports = await this.#reports();
    const ports = reports.map((report) => Number(/address=127\.0\.0\.1:(?<port>\d+)/u.exec(report)?.groups?.port));
    const [, port] = ports.toSorted((a, b) => a - b);
    const master = this.servers.find((server) => server.port === port);
    if (!master) throw new Error(`no server of ours is the master: ${ports.join(', ')}`);
    return master;
  }

  /** Nobody answers any more, so that nobody fails over either. */
  freeze(): void {
    for (const one of [...this.sentinels, ...this.servers]) one.freeze();
  }

  thaw(): void {
    for (const one of [...this.servers, ...this.sentinels]) one.thaw();
  }

  /** Kills all servers and starts them in their first roles, with nothing or with all they had. The Sentinels live on. */
  async restart(options: { readonly empty: boolean }): Promise<void> {
    await Promise.all(this.servers.map((server) => server.restart(options)));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((one) => one.stop()));
  }

  #reports(): Promise<string[]> {
    return Promise.all(this.sentinels.map(({ port }) => askRedis(port, 'INFO sentinel').catch(() => '')));
  }
}

/** Resolves when the replica has its master's data. */
async function inStep({ port }: RedisServer): Promise<void> {
  await eventually(async () => (await askRedis(port, 'INFO replication')).includes('master_link_status:up'), {
    withinMs: 10_000,
    everyMs: 10,
  });
}

/** One redis-server in Sentinel mode. */
export class Sentinel extends OwnServer {
  constructor(
    private readonly name: string,
    private readonly masterPort: number,
    private readonly downAfterMs: number,
  ) {
    super();
  }

  protected async prepare(): Promise<void> {
    this.directory = await mkdtemp(join(MEMORY_DIR, 'redis-sentinel-'));
    this.port = await freePort();
  }

  protected async launch(): Promise<void> {
    const { name, masterPort, downAfterMs } = this;
    const config = [
      `port ${this.port}`,
      'bind 127.0.0.1',
      `dir ${this.directory}`,
      `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} ${Math.max(downAfterMs * 4, 2_000)}`,
    ];
    const file = join(this.directory, 'sentinel.conf');
    await writeFile(file, config.join('\n'));
    this.process = await ServerProcess.start({
      command: 'redis-server',
      args: [file, '--sentinel'],
      cwd: this.directory,
      isReady: async (pid) => (await askRedis(this.port, 'INFO server')).includes(`process_id:${pid}\r`),
    });
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true, force: true });
  }
}
