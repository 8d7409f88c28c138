import { connect, type Socket } from 'node:net';
import { LockBackendError, LockConfigurationError } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually, failureOf, freePort, SLACK_MS, timeLimitOf } from '../../support/index.js';
import { StandIn } from '../../support/stand-in.js';
import { MemcachedWorld } from './memcached-world.js';

/** A connection is idle after so long, and silent when an answer takes so long. */
const TIMEOUT_MS = timeLimitOf(200);

describeWanted(['memcached'], '%s: connections that the network has forgotten', () => {
  it.each(['meta', 'classic'] as const)(
    'cost whoever does not wait one silence, and no failure, after an idle time: %s',
    async (protocol) => {
      await using world = await MemcachedWorld.start();
      const { proxy, servers } = await world.proxy();
      const changes: string[] = [];
      const failures: string[] = [];
      const observers = [
        {
          healthChanged: ({ status, detail = '' }: { status: string; detail?: string }) =>
            changes.push(`${status} ${detail}`),
          backendFailed: ({ error }: { error: unknown }) => failures.push(String(error)),
        },
      ];
      const service = world.service({ servers, protocol, requestTimeoutMs: TIMEOUT_MS }, { observers });
      const held = await service.acquire('held', { ttlMs: 60_000 });
      await idle();
      proxy.forget();
      const since = performance.now();
      const lock = await service.tryAcquire('k', { ttlMs: 60_000 });
      expect(performance.now() - since).toTakeLessThan(TIMEOUT_MS + 2 * SLACK_MS);
      expect(lock?.isHeld).toBe(true);
      expect(held.isHeld).toBe(true);
      expect(changes.join(';')).toMatch(new RegExp(`^up [^;]*;down [^;]*no answer within ${TIMEOUT_MS} ms;up `, 'u'));
      await idle();
      proxy.forget();
      await lock?.release();
      expect(await world.lease('k')).toBeUndefined();
      expect(failures).toEqual([]);
      await held.release();
    },
  );

  it('are told from a server that has stopped: that is a failure at once, and after an idle time not much later', async () => {
    await using world = await MemcachedWorld.start();
    const service = world.service({ requestTimeoutMs: TIMEOUT_MS });
    await (await service.acquire('k')).release();
    world.server.freeze();
    let since = performance.now();
    await expect(failureOf(service.tryAcquire('k', { ttlMs: 2_000 }))).resolves.toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toTakeLessThan(TIMEOUT_MS + SLACK_MS);
    world.server.thaw();
    await eventually(async () => (await service.acquire('k', { waitMs: 0 })).release());
    await idle();
    world.server.freeze();
    since = performance.now();
    const failure = await failureOf(service.tryAcquire('k', { ttlMs: 2_000 }));
    expect(failure).toMatchObject({ cause: { kind: 'unknown' } });
    expect(performance.now() - since).toTakeLessThan(2 * TIMEOUT_MS + 2 * SLACK_MS);
    world.server.thaw();
  });
});

describeWanted(['memcached'], '%s: questions that arrive after they were given up', () => {
  it.each(['meta', 'classic'] as const)('leave no lease behind for longer than a moment: %s', async (protocol) => {
    await using world = await MemcachedWorld.start();
    await using relay = await LateRelay.start(world.server.port, 'add lock:l:late ');
    const service = world.service({ servers: `127.0.0.1:${relay.port}`, protocol });
    await (await service.acquire('warm-up')).release();
    await expect(failureOf(service.tryAcquire('late', { ttlMs: 60_000 }))).resolves.toBeInstanceOf(LockBackendError);
    // The release that follows has found nothing.
    await eventually(() => relay.hasAnsweredOthers);
    relay.deliver();
    await eventually(async () => expect(await world.lease('late')).toBeDefined());
    await eventually(async () => expect(await world.lease('late')).toBeUndefined());
  });

  it('leave none behind a lock that was got at the second try, and given back', async () => {
    await using world = await MemcachedWorld.start();
    await using relay = await LateRelay.start(world.server.port, 'add lock:l:late ');
    const service = world.service({ servers: `127.0.0.1:${relay.port}`, requestTimeoutMs: TIMEOUT_MS });
    await (await service.acquire('warm-up')).release();
    await idle();
    const lock = await service.acquire('late', { ttlMs: 60_000 });
    expect(relay.hasAnsweredOthers).toBe(true);
    await lock.release();
    relay.deliver();
    await eventually(async () => expect(await world.lease('late')).toBeDefined());
    await eventually(async () => expect(await world.lease('late')).toBeUndefined());
  });
});

describeWanted(['memcached'], '%s: the start', () => {
  it('connects, and says so', async () => {
    await using world = await MemcachedWorld.start({ args: ['-M'] });
    const service = world.service();
    await service.start();
    expect(service.health).toEqual({ status: 'up' });
  });

  it.each([
    ['is not there', async () => `127.0.0.1:${await freePort()}`, 'ECONNREFUSED'],
    [
      'says nothing',
      async ({ server }: MemcachedWorld) => (server.freeze(), server.address),
      `no answer within ${TIMEOUT_MS} ms`,
    ],
  ])('is not stopped by a server that %s, and health shows it', async (_what, address, why) => {
    await using world = await MemcachedWorld.start();
    const failures: string[] = [];
    const observers = [{ backendFailed: ({ error }: { error: unknown }) => failures.push(String(error)) }];
    const options = { servers: await address(world), connectTimeoutMs: TIMEOUT_MS, requestTimeoutMs: TIMEOUT_MS };
    const service = world.service(options, { observers });
    const since = performance.now();
    await service.start();
    expect(performance.now() - since).toTakeLessThan(2 * TIMEOUT_MS + 2 * SLACK_MS);
    expect(service.health).toEqual({ status: 'down', detail: expect.stringContaining(why) });
    expect(failures).toEqual([expect.stringContaining(why)]);
    world.server.thaw();
  });

  it('is not stopped by one of several servers', async () => {
    await using world = await MemcachedWorld.start();
    await using other = await MemcachedWorld.start();
    const dead = `127.0.0.1:${await freePort()}`;
    const service = world.service({ servers: [world.server.address, other.server.address, dead] });
    await service.start();
    expect(service.health).toEqual({ status: 'down', detail: expect.stringContaining(dead) });
  });

  it('is stopped by another list of servers than that of others', async () => {
    await using world = await MemcachedWorld.start();
    await using other = await MemcachedWorld.start();
    await world.service().start();
    const service = world.service({ servers: [world.server.address, other.server.address] });
    await expect(failureOf(service.start())).resolves.toBeInstanceOf(LockConfigurationError);
  });
});

/** Keeps the first question of a kind, and what comes after it on that connection, until it is told to deliver. */
class LateRelay extends StandIn {
  /** Another client has requested the same item meanwhile, over another connection. */
  hasAnsweredOthers = false;
  #kept: (() => void) | undefined;

  constructor(
    private readonly target: number,
    private readonly question: string,
  ) {
    super();
  }

  deliver(): void {
    this.#kept?.();
  }

  protected override connect(client: Socket): void {
    const memcached = this.keep(connect(this.target, '127.0.0.1'));
    const [, item = ''] = this.question.split(' ');
    let [keeps, asked] = [false, false];
    client.on('data', (chunk) => {
      keeps ||= this.#kept === undefined && chunk.includes(this.question);
      asked ||= chunk.includes(item);
      if (keeps) this.#kept ??= () => memcached.write(chunk);
      else memcached.write(chunk);
    });
    memcached.on('data', (chunk) => {
      this.hasAnsweredOthers ||= asked && !keeps;
      client.write(chunk);
    });
  }
}

/** Until a connection that nobody uses counts as idle. */
function idle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2 * TIMEOUT_MS));
}
