import { eventually, FaultProxy, freePort } from '../support/index.js';
import { ZookeeperServer, type ZookeeperServerOptions } from './zookeeper-server.js';

const IDS = [1, 2, 3] as const;

export interface ZookeeperEnsembleOptions extends Omit<ZookeeperServerOptions, 'myid'> {
  /** Puts a proxy between each two servers, so that one can be cut off from the others alone. @default false */
  readonly proxied?: boolean;
}

/** Three real ZooKeepers that form one ensemble. */
export class ZookeeperEnsemble {
  private constructor(
    readonly servers: readonly ZookeeperServer[],
    private readonly links: readonly Link[],
  ) {}

  static async start({ proxied = false, ...options }: ZookeeperEnsembleOptions = {}): Promise<ZookeeperEnsemble> {
    const ports = new Map<number, Ports>();
    for (const id of IDS) ports.set(id, { quorum: await freePort(), election: await freePort() });
    const links = proxied ? await makeLinks(ports) : [];
    const servers: ZookeeperServer[] = [];
    for (const myid of IDS) {
      const settings = { ...membersAsSeenBy(myid, ports, links), ...options.settings };
      const server = new ZookeeperServer({ ...options, settings, myid });
      await server.prepare();
      servers.push(server);
    }
    const ensemble = new ZookeeperEnsemble(servers, links);
    try {
      await Promise.all(servers.map((server) => server.launch()));
      return ensemble;
    } catch (error) {
      await ensemble.stop();
      throw error;
    }
  }

  get connectString(): string {
    return this.servers.map(({ address }) => address).join(',');
  }

  async leader(): Promise<ZookeeperServer> {
    const [leader] = await this.#byMode('leader');
    if (!leader) throw new Error('the ensemble has no leader now');
    return leader;
  }

  followers(): Promise<readonly ZookeeperServer[]> {
    return this.#byMode('follower');
  }

  /** Nothing that the others say reaches this one any more, nor they it, and no connection is closed. Only `proxied`. */
  isolate(server: ZookeeperServer): void {
    const id = this.servers.indexOf(server) + 1;
    for (const { from, to, proxy } of this.links) if (from === id || to === id) proxy.pause();
  }

  /** Ends `isolate`. */
  heal(): void {
    for (const { proxy } of this.links) proxy.resume();
  }

  /** Resolves when all three are one ensemble again. */
  async complete(): Promise<void> {
    await eventually(async () => (await this.followers()).length === 2, { withinMs: 15_000 });
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
    await Promise.all(this.links.map(({ proxy }) => proxy.close()));
  }

  async #byMode(mode: string): Promise<readonly ZookeeperServer[]> {
    const found: ZookeeperServer[] = [];
    for (const server of this.servers) {
      const status = await server.ask('srvr').catch(() => '');
      if (status.includes(`Mode: ${mode}`)) found.push(server);
    }
    return found;
  }
}

interface Ports {
  readonly quorum: number;
  readonly election: number;
}

/** How one server reaches another, for what a leader and its followers have to say to each other. */
interface Link {
  readonly from: number;
  readonly to: number;
  readonly proxy: FaultProxy;
}

async function makeLinks(ports: ReadonlyMap<number, Ports>): Promise<Link[]> {
  const links: Link[] = [];
  for (const from of IDS) {
    for (const [to, { quorum }] of ports) {
      if (from !== to) links.push({ from, to, proxy: await FaultProxy.start({ port: quorum }) });
    }
  }
  return links;
}

/** The lines of one server's zoo.cfg. */
function membersAsSeenBy(myid: number, ports: ReadonlyMap<number, Ports>, links: readonly Link[]) {
  const lines = [...ports].map(([id, { quorum, election }]) => {
    const link = links.find(({ from, to }) => from === myid && to === id);
    return [`server.${id}`, `127.0.0.1:${link?.proxy.port ?? quorum}:${election}`] as const;
  });
  return Object.fromEntries(lines);
}
