import { Redis } from 'ioredis';
import { type LockBackend, LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { redlock, type RedlockOptions } from 'nestjs-distributed-lock/redlock';
import { atLeastMs, FaultProxy, RedisServer, type RedisServerOptions, World } from '../../support/index.js';
import { leaseKeyOf } from './harness.js';

export type WorldOptions = Omit<RedlockOptions, 'clients' | 'nodes' | 'urls'> & { readonly urls?: readonly string[] };

/** Time that a node may take in these tests; the machine may be busy. */
export const NODE_TIMEOUT_MS = atLeastMs(1_000);

/** Several masters, an operator who looks at each of them from outside, and what a test opened. */
export class RedlockWorld extends World {
  servers: readonly RedisServer[] = [];
  operators: readonly Redis[] = [];

  constructor(
    private readonly masters = 5,
    private readonly options?: RedisServerOptions,
  ) {
    super();
  }

  async start(): Promise<void> {
    this.servers = await Promise.all(Array.from({ length: this.masters }, () => RedisServer.start(this.options)));
    this.operators = this.servers.map(({ url }) => new Redis(url, { retryStrategy: () => 20 }));
    for (const operator of this.operators) operator.on('error', () => undefined);
    await this.#settle();
  }

  get urls(): string[] {
    return this.servers.map(({ url }) => url);
  }

  /** Stands for a process. Ends with the test. */
  service(options: WorldOptions = {}, serviceOptions?: LockServiceOptions): LockService {
    return this.closing(new LockService(this.#connect(options), serviceOptions));
  }

  backend(options: WorldOptions = {}): LockBackend {
    return this.closing(this.#connect(options));
  }

  /** One proxy for each master. */
  async proxies(): Promise<{ readonly all: readonly FaultProxy[]; readonly urls: readonly string[] }> {
    const all = await Promise.all(this.servers.map((server) => FaultProxy.start(server)));
    for (const proxy of all) this.closing(proxy);
    return { all, urls: all.map(({ port }) => `redis://127.0.0.1:${port}`) };
  }

  /** The masters at these places say nothing while `work` runs. */
  async whileFrozen(places: readonly number[], work: () => Promise<unknown>): Promise<void> {
    const frozen = places.map((place) => this.servers[place]);
    for (const server of frozen) server?.freeze();
    try {
      await work();
    } finally {
      for (const server of frozen) server?.thaw();
    }
  }

  /** Whom each master has as the owner of the key; `null` where it is free. */
  owners(key: string): Promise<(string | null)[]> {
    return Promise.all(
      this.operators.map(async (operator) => (await operator.get(leaseKeyOf(key)))?.split('|')[0] ?? null),
    );
  }

  /** How many masters have a lease for the key. */
  async leases(key: string): Promise<number> {
    return (await this.owners(key)).filter((owner) => owner !== null).length;
  }

  /** A lease of somebody else's, on some of the masters. */
  async occupy(key: string, owner: string, masters: readonly number[], ttlMs = 60_000): Promise<void> {
    const value = `${owner}|${Date.now() * 1_000}|1|${JSON.stringify({ host: 'elsewhere', pid: 1, label: owner })}`;
    for (const master of masters) await this.operators[master]?.set(leaseKeyOf(key), value, 'PX', Math.ceil(ttlMs));
  }

  async free(key: string, masters: readonly number[]): Promise<void> {
    for (const master of masters) await this.operators[master]?.del(leaseKeyOf(key));
  }

  override async endTest(): Promise<void> {
    await super.endTest();
    await this.#settle();
  }

  async stop(): Promise<void> {
    for (const operator of this.operators) operator.disconnect();
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  /** Nodes with nothing on them, that have been there for ever. */
  async #settle(): Promise<void> {
    await Promise.all(this.operators.map((operator) => operator.multi().flushall().set('redlock:since', 0).exec()));
  }

  #connect(options: WorldOptions): LockBackend {
    return redlock({ urls: this.urls, requestTimeoutMs: NODE_TIMEOUT_MS, ...options })();
  }
}
