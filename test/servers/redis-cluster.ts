import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { askRedis, eventually, freePort, RedisServer } from '../support/index.js';
import { MEMORY_DIR } from './memory-dir.js';

export interface RedisClusterOptions {
  /** Replicas of each of the three masters. @default 1 */
  readonly replicas?: number;
  /** After how long a silent node is taken for dead. @default 1_000 */
  readonly nodeTimeoutMs?: number;
  /** As for `RedisServer`. @default false */
  readonly persistent?: boolean;
}

/** A node that is silent for so long has no say in who serves a key. */
const FROZEN_MS = 1_000;
const MASTERS = 3;
const SLOTS = 16_384;
const PATIENCE = { withinMs: 20_000, everyMs: 20 };

interface ClusterNode {
  readonly id: string;
  readonly port: number;
  readonly flags: readonly string[];
  readonly slots: readonly (readonly [first: number, last: number])[];
}

/** Three masters with a third of the slots each, and their replicas. */
export class RedisCluster {
  private constructor(
    /** The masters of the start first, then the first replica of each, and so on. */
    readonly servers: readonly RedisServer[],
    private readonly directory: string,
  ) {}

  /** Resolves when all slots are served and all replicas are in step. A node takes part two seconds after its start at the earliest. */
  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { replicas = 1, nodeTimeoutMs = 1_000, persistent = false } = options;
    const directory = await mkdtemp(join(MEMORY_DIR, 'redis-cluster-'));
    const node = async (place: number): Promise<RedisServer> => {
      const bus = await freePort();
      const flags = {
        'cluster-enabled': 'yes',
        'cluster-port': bus,
        'cluster-node-timeout': nodeTimeoutMs,
        // Apart from the data, so that a node that restarts empty still knows its cluster.
        'cluster-config-file': join(directory, `node-${place}.conf`),
        'cluster-replica-validity-factor': 0,
        // As the page on Redis advises: else one shard without a master closes all of them.
        'cluster-require-full-coverage': 'no',
        'repl-diskless-sync-delay': 0,
      };
      const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
      const server = await RedisServer.start({ persistent, args });
      await askRedis(server.port, `CLUSTER SET-CONFIG-EPOCH ${place + 1}`);
      return server;
    };
    const count = MASTERS * (1 + replicas);
    const cluster = new RedisCluster(await Promise.all(Array.from({ length: count }, (_, i) => node(i))), directory);
    await cluster.#join();
    return cluster;
  }

  get addresses(): { readonly host: string; readonly port: number }[] {
    return this.servers.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** The master that serves the key, as most nodes that answer see it. */
  async masterOf(key: string): Promise<RedisServer> {
    const views = await Promise.all(this.servers.map(({ port }) => nodesSeenBy(port, FROZEN_MS).catch(() => [])));
    const slot = Number(await Promise.any(this.servers.map(({ port }) => askRedis(port, `CLUSTER KEYSLOT "${key}"`))));
    const seen = views.flatMap((nodes) => nodes.filter(({ slots }) => slots.some(([a, b]) => a <= slot && slot <= b)));
    const votes = seen.map(({ port }) => seen.filter((other) => other.port === port).length);
    const port = seen[votes.indexOf(Math.max(...votes))]?.port;
    const server = this.servers.find((one) => one.port === port);
    if (!server) throw new Error(`nobody serves ${key}`);
    return server;
  }

  /** Nobody answers any more, so that nobody fails over either. */
  freeze(): void {
    for (const server of this.servers) server.freeze();
  }

  thaw(): void {
    for (const server of this.servers) server.thaw();
  }

  /** Kills all nodes and starts them again, with no data or with all they had; their roles and slots stay. */
  async restart(options: { readonly empty: boolean }): Promise<void> {
    await Promise.all(this.servers.map((server) => server.restart(options)));
    await this.#serving();
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
    await rm(this.directory, { recursive: true, force: true });
  }

  async #join(): Promise<void> {
    const [first] = this.servers;
    const nodes = (await Promise.all(this.servers.map(({ port }) => nodesSeenBy(port)))).flat();
    const share = Math.ceil(SLOTS / MASTERS);
    await Promise.all(
      this.servers.map(async ({ port }, place) => {
        const last = Math.min((place + 1) * share, SLOTS) - 1;
        if (place < MASTERS) await askRedis(port, `CLUSTER ADDSLOTSRANGE ${place * share} ${last}`);
        const bus = /@(?<bus>\d+)/u.exec(await askRedis(port, 'CLUSTER NODES'))?.groups?.bus;
        if (first && place > 0) await askRedis(first.port, `CLUSTER MEET 127.0.0.1 ${port} ${bus}`);
      }),
    );
    const all = this.servers.length;
    await eventually(
      async () => expectEach(this.servers, async (port) => (await nodesSeenBy(port)).length === all),
      PATIENCE,
    );
    await Promise.all(
      this.servers.slice(MASTERS).map(({ port }, i) => askRedis(port, `CLUSTER REPLICATE ${nodes[i % MASTERS]?.id}`)),
    );
    await this.#serving();
  }

  /** Resolves when every node sees every slot served, and every replica has its master's data. */
  async #serving(): Promise<void> {
    const serves = async (port: number): Promise<boolean> => {
      const [cluster, replication] = await Promise.all([
        askRedis(port, 'CLUSTER INFO'),
        askRedis(port, 'INFO replication'),
      ]);
      return cluster.includes('cluster_state:ok') && !replication.includes('master_link_status:down');
    };
    const roles = async (port: number): Promise<boolean> =>
      (await nodesSeenBy(port)).filter(({ slots }) => slots.length > 0).length === MASTERS;
    await eventually(
      () => expectEach(this.servers, async (port) => (await serves(port)) && (await roles(port))),
      PATIENCE,
    );
  }
}

async function expectEach(
  servers: readonly RedisServer[],
  check: (port: number) => Promise<boolean>,
): Promise<boolean> {
  return (await Promise.all(servers.map(({ port }) => check(port)))).every(Boolean);
}

/** https://redis.io/docs/latest/commands/cluster-nodes/ */
async function nodesSeenBy(port: number, withinMs?: number): Promise<ClusterNode[]> {
  const lines = (await askRedis(port, 'CLUSTER NODES', withinMs)).split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [id = '', address = '', flags = '', , , , , , ...slots] = line.split(' ');
    return {
      id,
      port: Number(/:(?<port>\d+)@/u.exec(address)?.groups?.port),
      flags: flags.split(','),
      slots: slots.filter((range) => !range.startsWith('[')).map(rangeOf),
    };
  });
}

function rangeOf(text: string): readonly [number, number] {
  const [first, last = first] = text.split('-').map(Number);
  return [first ?? NaN, last ?? NaN];
}
