import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from './free-port.js';
import { MEMORY_DIR } from './memory-dir.js';
import { ServerProcess } from './server-process.js';

export interface EtcdServerOptions {
  /** How many members the cluster has. @default 1 */
  readonly members?: number;
  /** Files of a certificate and its key, for a port with TLS beside the plain one; `ca` has clients show theirs. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
  /** Further arguments of etcd. */
  readonly args?: readonly string[];
}

/**
 * Short, so that a lease may have a TTL of a second. A cluster has etcd's defaults: each election gives every lease its
 * whole TTL again, and on a busy machine shorter times bring elections that nobody asked for.
 */
const TIMES = (members: number): readonly string[] =>
  members === 1 ? ['--heartbeat-interval', '20', '--election-timeout', '200'] : [];

/** Real etcd members on 127.0.0.1, one cluster, with the faults that a test may inflict on it. They keep their data. */
export class EtcdServer {
  /** The first member's: a proxy may stand in front of it. */
  readonly port: number;

  private constructor(
    readonly members: readonly [EtcdMember, ...EtcdMember[]],
    private readonly dir: string,
  ) {
    this.port = members[0].port;
  }

  static async start(options: EtcdServerOptions = {}): Promise<EtcdServer> {
    const dir = await mkdtemp(join(MEMORY_DIR, 'etcd-server-'));
    const server = new EtcdServer(await membersIn(dir, options), dir);
    try {
      await server.#launch();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get urls(): readonly string[] {
    return this.members.map(({ url }) => url);
  }

  /** Stop answering and keep every connection open. */
  freeze(): void {
    for (const member of this.members) member.freeze();
  }

  thaw(): void {
    for (const member of this.members) member.thaw();
  }

  /** SIGKILL for all; resolves when they are gone. Their data stays. */
  async kill(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()));
  }

  /** Kills all and starts them again on the same ports, with nothing or with all they had. */
  async restart({ empty }: { readonly empty: boolean }): Promise<void> {
    await this.kill();
    if (empty) await Promise.all(this.members.map((member) => member.wipe()));
    await this.#launch();
  }

  /** The member that leads now, by its own word and that of a majority. */
  async leader(): Promise<EtcdMember> {
    const claims = await Promise.all(this.members.map((member) => member.leads().catch(() => false)));
    const [leader, second] = this.members.filter((_, place) => claims[place]);
    if (!leader || second) throw new Error('there is no leader, or not only one');
    return leader;
  }

  /** How many requests and messages of streams the members got, by method: what a backend really sends. */
  async requests(): Promise<Readonly<Record<string, number>>> {
    const total: Record<string, number> = {};
    for (const counts of await Promise.all(this.members.map((member) => member.requests()))) {
      for (const [method, count] of Object.entries(counts)) total[method] = (total[method] ?? 0) + count;
    }
    return total;
  }

  /** Ends it for good and removes what it wrote. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.dir, { recursive: true, force: true });
  }

  async #launch(): Promise<void> {
    await Promise.all(this.members.map((member) => member.launch()));
  }
}

async function membersIn(
  dir: string,
  { members = 1, tls, args = [] }: EtcdServerOptions,
): Promise<[EtcdMember, ...EtcdMember[]]> {
  const id = randomUUID();
  const places = await Promise.all(
    Array.from({ length: members }, async (_, place) => ({
      name: `${id}-${place}`,
      port: await freePort(),
      peerPort: await freePort(),
      ...(tls ? { tlsPort: await freePort() } : {}),
    })),
  );
  const cluster = places.map(({ name, peerPort }) => `${name}=http://127.0.0.1:${peerPort}`).join(',');
  const secure = tls ? ['--cert-file', tls.cert, '--key-file', tls.key] : [];
  const clients = tls?.ca === undefined ? [] : ['--client-cert-auth', '--trusted-ca-file', tls.ca];
  const identity = ['--initial-cluster', cluster, '--initial-cluster-token', id];
  const shared = [...identity, ...TIMES(members), ...secure, ...clients, ...args];
  const [first, ...others] = places.map(({ name, ...ports }) => new EtcdMember(name, ports, join(dir, name), shared));
  if (!first) throw new Error('a cluster has members');
  return [first, ...others];
}

interface Ports {
  readonly port: number;
  readonly peerPort: number;
  readonly tlsPort?: number;
}

export class EtcdMember {
  readonly port: number;
  readonly url: string;
  /** Where it speaks TLS, if it does. */
  readonly tlsUrl: string | undefined;
  readonly #peerUrl: string;
  #process: ServerProcess | undefined;

  constructor(
    private readonly name: string,
    { port, peerPort, tlsPort }: Ports,
    private readonly dir: string,
    private readonly args: readonly string[],
  ) {
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.tlsUrl = tlsPort === undefined ? undefined : `https://127.0.0.1:${tlsPort}`;
    this.#peerUrl = `http://127.0.0.1:${peerPort}`;
  }

  get running(): boolean {
    return this.#process?.running === true;
  }

  freeze(): void {
    this.#process?.freeze();
  }

  thaw(): void {
    this.#process?.thaw();
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  async wipe(): Promise<void> {
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Starts it, unless it runs. */
  async launch(): Promise<void> {
    if (this.running) return;
    const flags = {
      name: this.name,
      'data-dir': this.dir,
      'listen-client-urls': this.tlsUrl === undefined ? this.url : `${this.url},${this.tlsUrl}`,
      'advertise-client-urls': this.url,
      'listen-peer-urls': this.#peerUrl,
      'initial-advertise-peer-urls': this.#peerUrl,
      'log-level': 'error',
      logger: 'zap',
    };
    this.#process = await ServerProcess.start({
      command: 'etcd',
      args: [...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]), ...this.args],
      cwd: tmpdir(),
      isReady: () => this.#isReady(),
    });
  }

  async leads(): Promise<boolean> {
    const { header, leader } = await this.#ask<{ header: { member_id: string }; leader?: string }>(
      'maintenance/status',
    );
    return leader === header.member_id;
  }

  async requests(): Promise<Record<string, number>> {
    const metrics = await (await fetch(`${this.url}/metrics`)).text();
    const lines = metrics.matchAll(
      /^grpc_server_msg_received_total\{grpc_method="(?<method>\w+)",grpc_service="etcdserverpb\..*\} (?<count>\d+)$/gmu,
    );
    return Object.fromEntries(Array.from(lines, ({ groups }) => [groups?.method ?? '', Number(groups?.count)]));
  }

  /** Healthy is who knows a leader. */
  async #isReady(): Promise<boolean> {
    const health = await fetch(`${this.url}/health`);
    return (await health.text()).includes('"true"');
  }

  async #ask<Answer>(path: string): Promise<Answer> {
    const answer = await fetch(`${this.url}/v3/${path}`, { method: 'POST', body: '{}' });
    return (await answer.json()) as Answer;
  }
}
