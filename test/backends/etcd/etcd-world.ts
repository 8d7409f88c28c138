import { randomUUID } from 'node:crypto';
import { Deadline, type LockBackend, LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import type { AcquireRequest } from '../../../lib/core/leasing/lease-request.js';
import type { Lease } from '../../../lib/core/leasing/lease.js';
import { etcd, type EtcdOptions } from 'nestjs-distributed-lock/etcd';
import { EtcdLockNames } from '../../../lib/backends/etcd/lock-names.js';
import { EtcdServer, type EtcdServerOptions } from '../../servers/etcd-server.js';
import { EtcdOperator, type StoredKey } from './operator.js';
import { atLeastMs, eventually, FaultProxy } from '../../support/index.js';

const names = new EtcdLockNames('lock');

/** Shortest TTL of a session that has to last: whole seconds, as etcd has them. */
export function wholeSecondsOf(ms: number): number {
  return Math.ceil(atLeastMs(ms) / 1_000) * 1_000;
}

/** A cluster of its own, with a proxy in front of its first member: who goes through it suffers, who does not sees the truth. */
export class EtcdWorld implements AsyncDisposable {
  readonly operator: EtcdOperator;
  readonly #opened: { close(withinMs?: number): Promise<void> }[] = [];

  private constructor(
    readonly server: EtcdServer,
    readonly proxy: FaultProxy,
  ) {
    this.operator = new EtcdOperator(server.urls);
  }

  static async start(options?: EtcdServerOptions): Promise<EtcdWorld> {
    const server = await EtcdServer.start(options);
    return new EtcdWorld(server, await FaultProxy.start(server));
  }

  get proxiedUrl(): string {
    return `http://127.0.0.1:${this.proxy.port}`;
  }

  backend(options: Partial<EtcdOptions> = {}): LockBackend {
    const backend = etcd({ endpoints: this.server.urls, sessionTtlMs: wholeSecondsOf(2_000), ...options })();
    this.#opened.push(backend);
    return backend;
  }

  service(options: Partial<EtcdOptions> = {}, more?: LockServiceOptions): LockService {
    const service = new LockService(this.backend(options), more);
    this.#opened.push(service);
    return service;
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

  async closeClients(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((opened) => opened.close(1_000)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.proxy.resume();
    this.server.thaw();
    await this.closeClients();
    await this.proxy.close();
    await this.server.stop();
  }
}

export interface Request {
  readonly waitMs?: number;
  readonly owner?: string;
  readonly onBlocked?: NonNullable<AcquireRequest['onBlocked']>;
  readonly signal?: AbortSignal;
}

/** Asks a backend itself, so that nobody of this process waits for anybody else of it. */
export function contend(
  backend: LockBackend,
  key: string,
  { waitMs = 0, ...rest }: Request = {},
): Promise<Lease | null> {
  return backend.acquire(key, {
    owner: randomUUID(),
    ttlMs: 30_000,
    deadline: Deadline.after(waitMs),
    metadata: { host: 'somewhere', pid: process.pid, label: 'contender' },
    ...rest,
  });
}

/** `contend` where the lock must be had. */
export async function win(backend: LockBackend, key: string, request: Request = {}): Promise<Lease> {
  const lease = await contend(backend, key, request);
  if (!lease) throw new Error(`${key} should have been free`);
  return lease;
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
