import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { type LockBackend, LockService } from 'nestjs-distributed-lock/core';
import { type RedisClientPackage, redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { eventually, FaultProxy, RedisServer, type RedisServerOptions, SLACK_MS, World } from '../../support/index.js';
import { monitorRedis } from '../../servers/redis-monitor.js';

export { contend, win } from '../../support/contend.js';

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
export class RedisWorld extends World {
  // `start` makes these.
  server!: RedisServer;
  operator!: Redis;

  constructor(private readonly options?: RedisServerOptions) {
    super();
  }

  async start(): Promise<void> {
    this.server = await RedisServer.start(this.options);
    this.operator = new Redis(this.server.url, { retryStrategy: () => 20 });
    this.operator.on('error', () => undefined);
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

  disconnecting<T extends { disconnect(): void }>(client: T): T {
    this.closing({ close: async () => client.disconnect() });
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

  override async endTest(): Promise<void> {
    await super.endTest();
    await this.operator.flushall();
  }

  async stop(): Promise<void> {
    this.operator.disconnect();
    await this.server.stop();
  }
}

/** A block of tests that share a world. */
export function describeRedis(title: string, tests: (world: RedisWorld) => void): void {
  describe(title, () => tests(RedisWorld.shared()));
}
