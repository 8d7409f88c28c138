import { freePort } from './free-port.js';
import { ZookeeperServer, type ZookeeperServerOptions } from './zookeeper-server.js';

/** Three real ZooKeepers that form one ensemble. */
export class ZookeeperEnsemble {
  private constructor(readonly servers: readonly ZookeeperServer[]) {}

  static async start(options: ZookeeperServerOptions = {}): Promise<ZookeeperEnsemble> {
    const ids = [1, 2, 3];
    const ports = await Promise.all(ids.map(async () => [await freePort(), await freePort()] as const));
    const members = Object.fromEntries(ids.map((id) => [`server.${id}`, `127.0.0.1:${ports[id - 1]?.join(':')}`]));
    const settings = { ...members, ...options.settings };
    const servers = await Promise.all(ids.map((myid) => ZookeeperServer.prepare({ ...options, settings, myid })));
    const ensemble = new ZookeeperEnsemble(servers);
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

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
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
