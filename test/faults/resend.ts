import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { eventually, type Suite } from '../support/index.js';
import { ProxiedBackend } from './proxied-backend.js';
import type { FaultTheme } from './fault-theme.js';

const LONG_TTL_MS = 20_000;

/** How a request looks on the wire, to acquire and to give back. */
const REQUEST = 'EVALSHA';

export const resend: FaultTheme = {
  title: 'a client of Redis that sends again by itself',
  declare: (suite, name) => resending(suite, name === 'redis-plain' ? 'plain' : 'queue'),
};

function resending({ harness, it }: Suite, mode: RedisMode): void {
  it('A8: a release that runs twice does not touch the next holder', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    await using client = await ResendingClient.start(world.proxy, mode);
    const [{ service }, key] = [client, contract.key()];
    const lock = await service.acquire(key, { ttlMs: LONG_TTL_MS });
    const lost = world.proxy.dropReplyAfter(REQUEST);
    const next = (await contract.service()).acquire(key, { ttlMs: LONG_TTL_MS });
    await Promise.all([lost, lock.release()]);
    const present = await next;
    await client.isBack();
    expect(present.isHeld).toBe(true);
    await expect(harness.leftovers(key)).resolves.not.toEqual([]);
    await expect(service.tryAcquire(key)).resolves.toBeNull();
    await present.release();
  });

  it('A8: an acquire that runs twice is one grant', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    await using client = await ResendingClient.start(world.proxy, mode);
    const key = contract.key();
    const lost = world.proxy.dropReplyAfter(REQUEST);
    const acquiring = client.service.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 5_000 });
    await lost;
    const lock = await acquiring;
    await lock.release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });
}

/** A client that an application may hand over: one that queues and repeats what got no answer. */
class ResendingClient implements AsyncDisposable {
  readonly service: LockService;

  private constructor(
    private readonly client: Redis,
    mode: RedisMode,
  ) {
    client.on('error', () => undefined);
    this.service = new LockService(redis({ client, mode }));
  }

  static async start({ port }: { readonly port: number }, mode: RedisMode): Promise<ResendingClient> {
    const started = new ResendingClient(new Redis(`redis://127.0.0.1:${port}`, { retryStrategy: () => 10 }), mode);
    await (await started.service.acquire('warm-up')).release();
    return started;
  }

  async isBack(): Promise<void> {
    await eventually(() => this.client.status === 'ready');
    await this.client.ping();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.close();
    this.client.disconnect();
  }
}
