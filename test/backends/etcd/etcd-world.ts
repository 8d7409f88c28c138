import { type LockBackend, LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { etcd, type EtcdOptions } from 'nestjs-distributed-lock/etcd';
import { EtcdLockNames } from '../../../lib/backends/etcd/lock-names.js';
import { EtcdServer, type EtcdServerOptions } from '../../servers/etcd-server.js';
import { EtcdOperator, type StoredKey } from './operator.js';
import { atLeastMs, eventually, FaultProxy, World } from '../../support/index.js';

export { contend, win } from '../../support/contend.js';

const names = new EtcdLockNames('lock');

/** Shortest TTL of a session that has to last: whole seconds, as etcd has them. */
export function wholeSecondsOf(ms: number): number {
  return Math.ceil(atLeastMs(ms) / 1_000) * 1_000;
}

/** A cluster of its own, with a proxy in front of its first member: who goes through it suffers, who does not sees the truth. */
export class EtcdWorld extends World {
  // `start` makes these.
  server!: EtcdServer;
  proxy!: FaultProxy;
  operator!: EtcdOperator;

  constructor(private readonly options?: EtcdServerOptions) {
    super();
  }

  async start(): Promise<void> {
    this.server = await EtcdServer.start(this.options);
    this.proxy = await FaultProxy.start(this.server);
    this.operator = new EtcdOperator(this.server.urls);
  }

  get proxiedUrl(): string {
    return `http://127.0.0.1:${this.proxy.port}`;
  }

  backend(options: Partial<EtcdOptions> = {}): LockBackend {
    const defaults = { endpoints: this.server.urls, sessionTtlMs: wholeSecondsOf(2_000) };
    return this.closing(etcd({ ...defaults, ...options })());
  }

  service(options: Partial<EtcdOptions> = {}, more?: LockServiceOptions): LockService {
    return this.closing(new LockService(this.backend(options), more));
  }

  /** Behind the proxy, and connected, with a session: a fault meets what it is meant for. */
  async proxied(options: Partial<EtcdOptions> = {}, more?: LockServiceOptions): Promise<LockService> {
    const service = this.service({ endpoints: this.proxiedUrl, ...options }, more);
    await (await service.acquire('warm-up')).release();
    return service;
  }

  /** The same with another way to the server, past the proxy, to turn to. */
  async proxiedFirst(options: Partial<EtcdOptions> = {}): Promise<LockService> {
    const endpoints = [this.proxiedUrl, ...this.server.urls];
    for (;;) {
      // Which one is asked first is left to chance.
      const service = this.service({ endpoints, ...options });
      await (await service.acquire('warm-up')).release();
      if (this.proxy.connections > 0) return service;
      await service.close();
    }
  }

  /** Owners that hold or wait for `key`, the holder first. */
  places(key: string): Promise<StoredKey[]> {
    return this.operator.list(names.queueRange(key).key);
  }

  /** That of whoever has the lock by this place. */
  async tokenOf(place: StoredKey | undefined): Promise<bigint> {
    const [tokenOriginName] = await this.operator.list(names.tokenOriginName);
    return BigInt(tokenOriginName?.value ?? 0) + (place?.createdAt ?? 0n);
  }

  override async endTest(): Promise<void> {
    await Promise.all(this.opened.splice(0).map((opened) => opened.close(1_000)));
  }

  async stop(): Promise<void> {
    this.proxy.resume();
    this.server.thaw();
    await this.endTest();
    await this.proxy.close();
    await this.server.stop();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Resolves when so many stand in line for `key`. */
export function lineOf(world: EtcdWorld, key: string, length: number, withinMs = 5_000): Promise<StoredKey[]> {
  return eventually(
    async () => {
      const places = await world.places(key);
      if (places.length !== length) throw new Error(`${places.length} in line`);
      return places;
    },
    { withinMs, everyMs: 20 },
  );
}
