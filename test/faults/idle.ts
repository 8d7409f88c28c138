import type { BackendHealth, LockService } from 'nestjs-distributed-lock/core';
import { type Contract, eventually, type FaultProxy, type Suite, timeLimitOf } from '../support/index.js';
import { ProxiedBackend } from './proxied-backend.js';
import { type BackendName, registered } from '../backends/registry.js';
import type { FaultTheme } from './fault-theme.js';

/** For no lease, and no session, to end meanwhile: what a waiter gets, it gets because it noticed. */
const TTL_MS = 30_000;
/** Longer by half than memcached's command time-out, after which a connection counts as idle, and than what follows a request. */
const IDLE_MS = 1_500;
/** After half a minute a connection to Redis is tried before it is used. No firewall forgets one sooner. */
const IDLE_ON_REDIS_MS = 31_000;

/** Noticing may take five seconds, and a new connection a moment. */
const NOTICED_WITHIN_MS = 5_000 + timeLimitOf(1_000);
const AT_ONCE_MS = timeLimitOf(2_500);
/** ZooKeeper answers all in order, so that a slow disk keeps everything waiting: silence says less there, and takes 3 s. */
const SLOW_MS = timeLimitOf(4_500);

/** Forgets idle connections as a network does: those that exist are black holes, for good, and new ones work. */
const title = 'a connection that the network forgot';

export const idleInLine: FaultTheme = { title, thorough: true, sessionTtlMs: TTL_MS, declare: whoWaits };

export const lostGrant: FaultTheme = { title, thorough: true, sessionTtlMs: TTL_MS, declare: whoWasGranted };

export const idle: FaultTheme = { title, thorough: true, sessionTtlMs: 10_000, declare: whoDoesNotWait };

function whoWaits({ it }: Suite, name: BackendName): void {
  it('who waits gets a key that became free, and health tells what happened', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const details = new Details();
    const service = await world.proxied(key, { defaults: { ttlMs: TTL_MS }, observers: [details] });
    const lock = await (await contract.service()).acquire(key, { ttlMs: TTL_MS });
    const waiting = service.acquire(key, { waitMs: 25_000 });
    await beIdle();
    world.proxy.forget();
    const freeSince = performance.now();
    await lock.release();
    const next = await details.during(service, waiting);
    const tookMs = performance.now() - freeSince;
    process.stdout.write(`${name}: has a key ${Math.round(tookMs)} ms after it became free; ${details.toString()}\n`);
    expect(next.isHeld).toBe(true);
    expect(tookMs).toTakeLessThan(NOTICED_WITHIN_MS);
    await next.release();
    await expectWell(service, details);
  });
}

/** The grant that nobody heard of is the server's: without help it would keep the key until the end of the session. */
function whoWasGranted({ it }: Suite, name: BackendName): void {
  it('who waits gets a key that was granted on the forgotten connection', async (contract) => {
    const { wire } = registered(name);
    if (!wire) throw new Error('the registry says nothing of its requests');
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const service = await world.proxied(key, { defaults: { ttlMs: TTL_MS } });
    const lock = await (await contract.service()).acquire(key, { ttlMs: TTL_MS });
    const waiting = service.acquire(key, { waitMs: 25_000 });
    world.proxy.pause('up');
    await sendOf(world.proxy, wire.acquire);
    await lock.release();
    const forgotten = world.proxy.forgetAfter(wire.acquire);
    const freeSince = performance.now();
    world.proxy.resume();
    await forgotten;
    const next = await waiting;
    expect(performance.now() - freeSince).toTakeLessThan(NOTICED_WITHIN_MS);
    expect(next).toMatchObject({ isHeld: true });
    await next.release();
  });
}

function sendOf(proxy: FaultProxy, request: string): Promise<void> {
  return new Promise((resolve) => {
    const stop = proxy.onRequest((chunk) => {
      if (!chunk.includes(request)) return;
      stop();
      resolve();
    });
  });
}

function whoDoesNotWait({ it }: Suite, name: BackendName): void {
  const atOnceMs = name === 'zookeeper' ? SLOW_MS : AT_ONCE_MS;
  const idleMs = name.startsWith('redis') ? IDLE_ON_REDIS_MS : IDLE_MS;

  const test = async (contract: Contract): Promise<void> => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const details = new Details();
    const service = await world.proxied(key, { defaults: { ttlMs: TTL_MS }, observers: [details] });
    await (await service.acquire(key)).release();
    await beIdle(idleMs);
    world.proxy.forget();
    const since = performance.now();
    const lock = await details.during(service, service.tryAcquire(key));
    const tookMs = performance.now() - since;
    process.stdout.write(`${name}: tryAcquire took ${Math.round(tookMs)} ms; ${details.toString()}\n`);
    expect(lock).toMatchObject({ isHeld: true });
    expect(tookMs).toTakeLessThan(atOnceMs);
    await lock?.release();
    await expectWell(service, details);
  };
  it('who does not wait gets a key that is free at once, and health tells what happened', test, 30_000 + idleMs);
}

/** A test of silence can only be silent. */
function beIdle(ms = IDLE_MS): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function expectWell(service: LockService, details: Details): Promise<void> {
  await eventually(() => expect(service.health.status).toBe('up'), { withinMs: 10_000 });
  expect(details.toString()).toMatch(/silent|no answer|lost|died/u);
}

/** All that health has said of trouble. */
class Details {
  readonly said = new Set<string>();

  healthChanged(health: BackendHealth): void {
    for (const { detail } of [health, ...(health.nodes ?? [])]) if (detail !== undefined) this.said.add(detail);
  }

  /** Advice comes without an event: somebody has to look. */
  async during<T>(service: LockService, task: Promise<T>): Promise<T> {
    const looking = setInterval(() => this.healthChanged(service.health), 10);
    try {
      return await task;
    } finally {
      this.healthChanged(service.health);
      clearInterval(looking);
    }
  }

  toString(): string {
    return `health: ${[...this.said].join(' | ') || 'nothing'}`;
  }
}
