import { LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { typeorm, type TypeOrmOptions } from 'nestjs-distributed-lock/typeorm';
import { Client } from 'pg';
import { describeWanted, FaultProxy, World } from '../../support/index.js';
import { type SqlHarness, sqlHarness } from './harness.js';

export type SqlType = 'postgres' | 'mariadb';

type Options = Partial<TypeOrmOptions> & { readonly url?: string; readonly locks?: LockServiceOptions };

/** A database server with a proxy in front of it, and services on both sides. */
export class SqlWorld extends World {
  readonly harness: SqlHarness;
  #proxy: FaultProxy | undefined;

  constructor(readonly type: SqlType) {
    super();
    this.harness = sqlHarness(type);
  }

  /** The server, the proxy and the lock table. */
  async start(): Promise<void> {
    await this.harness.start();
    this.#proxy = await FaultProxy.start(this.harness.server());
    const service = this.service();
    await (await service.acquire('the table is there')).release();
    await service.close();
  }

  async stop(): Promise<void> {
    await this.#proxy?.close();
    await this.harness.stop();
  }

  get proxy(): FaultProxy {
    if (!this.#proxy) throw new Error('The world has not started');
    return this.#proxy;
  }

  get url(): string {
    return this.harness.server().url;
  }

  /** What the server has written since it was started last. */
  get log(): string {
    return this.harness.server().output;
  }

  get proxiedUrl(): string {
    return this.urlOf({ port: this.proxy.port });
  }

  /** As `url`, by way of another port or as somebody else. */
  urlOf(change: { readonly port?: number; readonly username?: string; readonly password?: string }): string {
    const url = new URL(this.url);
    return Object.assign(url, { ...change, ...(change.port && { port: String(change.port) }) }).href;
  }

  ask(sql: string, parameters?: readonly unknown[]): Promise<readonly Record<string, unknown>[]> {
    return this.harness.ask(sql, parameters);
  }

  /** Hears all notifications on a channel of PostgreSQL. Resolves to the function that ends it. */
  async hear(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    const client = new Client({ connectionString: this.url });
    client.on('notification', ({ payload = '' }) => listener(payload));
    await client.connect();
    await client.query(`listen "${channel}"`);
    return () => client.end();
  }

  /** Ends with the test. */
  service({ url = this.url, locks, ...options }: Options = {}): LockService {
    const backend = typeorm({ dataSource: { options: { type: this.type, url } }, synchronize: true, ...options })();
    return this.closing(new LockService(backend, locks));
  }

  /** Behind the proxy, with its connection open, so that a fault meets what it is meant for. */
  async proxied(options: Options = {}): Promise<LockService> {
    const service = this.service({ url: this.proxiedUrl, ...options });
    await (await service.acquire('warm-up')).release();
    return service;
  }

  override async endTest(): Promise<void> {
    this.#proxy?.resume();
    await Promise.all(this.opened.splice(0).map((service) => service.close(1_000)));
  }
}

/** For PostgreSQL: connections whose last statement was a `listen`, or a look after waiters. */
export const LISTENERS = `select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
  and (query like 'listen %' or query like '% as waiter(%')`;

/** The same tests for each database server that `LOCK_BACKENDS` leaves in, which share a world. */
export function describeServers(name: string, tests: (world: SqlWorld, type: SqlType) => void): void {
  describeWanted(['postgres', 'mariadb'], `${name}, %s`, (type) => tests(SqlWorld.shared(type), type));
}
