import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { Deadline, type LockBackend, LockService } from 'nestjs-distributed-lock/core';
import type { AcquireRequest } from '../../../lib/core/leasing/lease-request.js';
import type { Lease } from '../../../lib/core/leasing/lease.js';
import { type RedisClientPackage, redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { eventually, FaultProxy, RedisServer, type RedisServerOptions, SLACK_MS } from '../../support/index.js';
import { monitorRedis } from '../../servers/redis-monitor.js';

/** The limit for steps that wait for nobody. A silent waiter costs five seconds. */
export const AT_ONCE_MS = Math.max(SLACK_MS, 2_500);

export interface WorldOptions {
  readonly url?: string;
  readonly mode?: RedisMode;
  readonly requestTimeoutMs?: number;
  readonly patienceMs?: number;
  readonly tracking?: 'auto' | 'off';
  /** @default ioredis */
  readonly clientPackage?: RedisClientPackage;
}

/** One server, an operator who looks at it from outside, and what a test opened. */
export class RedisWorld {
  readonly #opened: (() => Promise<unknown> | void)[] = [];

  private constructor(
    readonly server: RedisServer,
    readonly operator: Redis,
  ) {}

  static async start(options?: RedisServerOptions): Promise<RedisWorld> {
    const server = await RedisServer.start(options);
    const operator = new Redis(server.url, { retryStrategy: () => 20 });
    operator.on('error', () => undefined);
    return new RedisWorld(server, operator);
  }

  /** Stands for a process. Ends with the test. */
  service(options: WorldOptions = {}): LockService {
    return this.closing(new LockService(redis({ url: this.server.url, ...options })));
  }

  backend(options: WorldOptions = {}): LockBackend {
    return this.closing(redis({ url: this.server.url, ...options })());
  }

  async proxy(): Promise<FaultProxy & { readonly url: string }> {
    const proxy = this.closing(await FaultProxy.start({ port: this.server.port }));
    return Object.assign(proxy, { url: `redis://127.0.0.1:${proxy.port}` });
  }

  closing<T extends { close(): Promise<unknown> }>(opened: T): T {
    this.#opened.push(() => opened.close());
    return opened;
  }

  disconnecting<T extends { disconnect(): void }>(client: T): T {
    this.#opened.push(() => client.disconnect());
    return client;
  }

  waitersFor(key: string): Promise<number> {
    return this.operator.llen(`lock:{${key}}:q`);
  }

  async untilWaiting(key: string, count: number): Promise<void> {
    await eventually(async () => expect(await this.waitersFor(key)).toBe(count));
  }

  /** Requests share commands only after a test of the routing, which the first burst starts. */
  async untilKeysShareCommands(locks: LockService): Promise<void> {
    const keys = Array.from({ length: 50 }, (_, i) => `shared-${i}`);
    const evalshaCount = async (): Promise<number> => (await this.server.commandStats()).get('evalsha') ?? 0;
    await eventually(async () => {
      const before = await evalshaCount();
      await Promise.all(keys.map((key) => locks.withLock(key, () => undefined)));
      expect((await evalshaCount()) - before).toBeLessThan(10);
    });
  }

  /** Commands that clients, not scripts, send while `work` runs, without those of the operator. */
  async commandsDuring(work: () => Promise<unknown>): Promise<string[]> {
    const seen: string[] = [];
    const marker = randomUUID();
    let isComplete = false;
    const monitor = await monitorRedis(this.server.port, ({ args: [command, firstArgument], isOfScript }) => {
      isComplete ||= firstArgument === marker;
      if (!isOfScript && !isComplete) seen.push(String(command).toLowerCase());
    });
    this.disconnecting(monitor);
    await work();
    await this.operator.echo(marker);
    await eventually(() => isComplete);
    return seen;
  }

  async endTest(): Promise<void> {
    for (const close of this.#opened.splice(0).toReversed()) await close();
    await this.operator.flushall();
  }

  async stop(): Promise<void> {
    this.operator.disconnect();
    await this.server.stop();
  }
}

export function contend(
  backend: LockBackend,
  key: string,
  { waitMs = 0, ...rest }: Partial<AcquireRequest> & { readonly waitMs?: number } = {},
): Promise<Lease | null> {
  const metadata = { host: 'somewhere', pid: 1 };
  return backend.acquire(key, {
    owner: randomUUID(),
    ttlMs: 30_000,
    deadline: Deadline.after(waitMs),
    metadata,
    ...rest,
  });
}

export async function win(...args: Parameters<typeof contend>): Promise<Lease> {
  const lease = await contend(...args);
  if (!lease) throw new Error(`${args[1]} should have been free`);
  return lease;
}
