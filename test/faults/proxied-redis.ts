import { LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { Redis } from 'ioredis';
import { RedisServer } from '../servers/redis-server.js';
import { FaultProxy } from '../support/fault-proxy.js';

/** A redis server of its own with a proxy in front of it: who goes through the proxy suffers, who does not sees the truth. */
export class ProxiedRedis implements AsyncDisposable {
  readonly #services: LockService[] = [];

  private constructor(
    readonly server: RedisServer,
    readonly proxy: FaultProxy,
    readonly operator: Redis,
    readonly mode: RedisMode,
  ) {}

  static async start(mode: RedisMode): Promise<ProxiedRedis> {
    const server = await RedisServer.start();
    return new ProxiedRedis(server, await FaultProxy.start(server), new Redis(server.url), mode);
  }

  get proxiedUrl(): string {
    return `redis://127.0.0.1:${this.proxy.port}`;
  }

  /** Behind the proxy, connected, and with all its scripts on the server, so that a fault meets what it is meant for. */
  async proxied(options?: LockServiceOptions): Promise<LockService> {
    const service = this.#open(this.proxiedUrl, options);
    const warmUp = await service.acquire('warm-up', { ttlMs: 30 });
    await new Promise((resolve) => setTimeout(resolve, 40));
    await warmUp.release();
    return service;
  }

  direct(options?: LockServiceOptions): LockService {
    return this.#open(this.server.url, options);
  }

  /** Leases and queues of `key` on the server. */
  async leftovers(key: string): Promise<string[]> {
    const names = await this.operator.keys(`lock:{${key}}*`);
    return names.filter((name) => !name.endsWith(':f'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.proxy.resume();
    await Promise.all(this.#services.map((service) => service.close(1_000)));
    await this.proxy.close();
    this.operator.disconnect();
    await this.server.stop();
  }

  #open(url: string, options?: LockServiceOptions): LockService {
    const service = new LockService(redis({ url, mode: this.mode }), options);
    this.#services.push(service);
    return service;
  }
}
