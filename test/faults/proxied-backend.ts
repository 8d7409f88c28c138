import { LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { connectBackend, type Connection, type Contract, FaultProxy, withPatience } from '../support/index.js';

/** A proxy in front of the backend under test: who goes through it suffers, who does not (`contract.service()`) sees the truth. */
export class ProxiedBackend implements AsyncDisposable {
  readonly #services: LockService[] = [];

  private constructor(
    readonly proxy: FaultProxy,
    private readonly contract: Contract,
    private readonly adaptConnection: (to: Connection) => Connection,
  ) {}

  static async start(contract: Contract, adaptConnection = (to: Connection) => to): Promise<ProxiedBackend> {
    const { server } = contract.harness;
    if (!server) throw new Error('there is no network between this backend and its server');
    return new ProxiedBackend(await FaultProxy.start(server()), contract, adaptConnection);
  }

  /**
   * Behind the proxy, connected, with all its scripts and the row of `key` on the server, so that a fault meets what it is
   * meant for.
   * @param patienceMs for each answer; by default as long as the backend waits
   */
  async proxied(
    key = this.contract.key(),
    options: LockServiceOptions = {},
    patienceMs?: number,
  ): Promise<LockService> {
    const { connection, shortTtlMs } = this.contract.harness;
    if (!connection) throw new Error('only this process can connect to this backend');
    const through = this.adaptConnection(connection(this.proxy));
    const backend = await connectBackend(patienceMs === undefined ? through : withPatience(through, patienceMs));
    const service = new LockService(backend, { ...options, defaults: { ttlMs: shortTtlMs, ...options.defaults } });
    this.#services.push(service);
    const lease = await this.contract.win(backend, key, { ttlMs: 20_000, waitMs: 20_000 });
    await lease.renew();
    await lease.release();
    return service;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.proxy.resume();
    await Promise.all(this.#services.map((service) => service.close(1_000)));
    await this.proxy.close();
  }
}
