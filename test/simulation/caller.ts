import type { AcquireOptions, LockHandle, LockService } from 'nestjs-distributed-lock/core';
import type { Believers } from './believers.js';
import type { ClosedKeys } from './closed-keys.js';
import type { Random } from '../support/random.js';
import type { Scenario } from './scenario.js';
import type { VirtualProcess, VirtualTime } from './virtual-time.js';

/** The world of one caller. */
export interface Surroundings {
  readonly scenario: Scenario;
  readonly time: VirtualTime;
  readonly process: VirtualProcess;
  readonly locks: LockService;
  readonly believers: Believers;
  readonly closed: ClosedKeys;
  /** By which the callers of a process may call off what they wait for. */
  readonly aborts: Set<AbortController>;
  readonly log: (line: string) => void;
  readonly violate: (what: string) => void;
}

/** Microtasks in which a caller who gives up has done so. */
const MOST_STEPS = 6;

/** Rounding of timers and messages that take their usual time. */
const SLACK_MS = 200;

/** One caller of a service, who takes and gives back locks in every way there is. */
export class Caller {
  constructor(
    private readonly name: string,
    private readonly random: Random,
    private readonly here: Surroundings,
  ) {}

  /** Until the time is up; the last call settles later. */
  async run(): Promise<void> {
    const { process, scenario, time } = this.here;
    while (time.now < scenario.durationMs) {
      await process.pause(this.random.below(scenario.ttlMs / 2));
      await this.#call();
    }
  }

  async #call(): Promise<void> {
    const key = this.random.oneOf(this.here.scenario.keys);
    const options = this.#options();
    const way = this.random.oneOf(['try', 'acquire', 'with', 'with', 'nested']);
    const since = this.here.time.now;
    this.#log(`${way} ${key} ${describe(options)}`);
    try {
      if (way === 'with') await this.#within(key, options);
      else if (way === 'nested') await this.#nested(key, options);
      else await this.#bare(way, key, options);
    } catch (error) {
      this.#log(`${way} ${key}: ${String(error)}`);
      if (!isExpected(error)) this.here.violate(`${this.name} got ${String(error)}`);
    }
    this.#assertSettled(way, since, options);
  }

  async #bare(way: string, key: string, options: AcquireOptions): Promise<void> {
    const { locks } = this.here;
    const { waitMs: _, signal: __, ...rest } = options;
    const lock = way === 'try' ? await locks.tryAcquire(key, rest) : await locks.acquire(key, options);
    if (!lock) return this.#log(`try ${key}: held by somebody else`);
    return this.#use(lock, options);
  }

  async #use(lock: LockHandle, options: AcquireOptions): Promise<void> {
    try {
      await this.#inside(lock, options);
    } finally {
      await this.#leave(lock);
    }
  }

  async #within(key: string, options: AcquireOptions): Promise<void> {
    await this.here.locks.withLock(
      key,
      async (lock) => {
        try {
          await this.#inside(lock, options);
        } finally {
          this.here.believers.remove(lock);
        }
      },
      options,
    );
  }

  /** The same key again, inside the first: in a nested call, in branches, or by jobs that nobody awaits. */
  async #nested(key: string, options: AcquireOptions): Promise<void> {
    const { locks, believers, scenario, process } = this.here;
    const { random } = this;
    await locks.withLock(
      key,
      async (outer) => {
        this.#enter(outer, options);
        try {
          const again = {
            reentrant: options.reentrant === true && random.chance(0.8),
            waitMs: random.below(scenario.ttlMs),
          };
          const way = random.oneOf(['nested', 'branches', 'strangers']);
          const calls = Array.from({ length: way === 'nested' ? 1 : 2 }, () => this.#enterAgain(key, again));
          await (way === 'strangers' ? process.pause(random.below(20)) : Promise.all(calls));
        } finally {
          believers.remove(outer);
        }
      },
      options,
    );
  }

  async #enterAgain(key: string, again: AcquireOptions): Promise<void> {
    try {
      await (this.random.chance(0.2) ? this.#nested(key, again) : this.#within(key, again));
    } catch (error) {
      this.#log(`again ${key}: ${String(error)}`);
      if (!isExpected(error)) this.here.violate(`${this.name} got ${String(error)}`);
    }
  }

  async #inside(lock: LockHandle, options: AcquireOptions): Promise<void> {
    this.#enter(lock, options);
    const { process, scenario } = this.here;
    const workMs = this.random.chance(0.7) ? this.random.below(20) : this.random.below(scenario.ttlMs * 1.5);
    await process.pause(workMs);
    if (this.random.chance(0.1)) throw new WorkError();
  }

  #enter(lock: LockHandle, options: AcquireOptions): void {
    const { minHoldMs } = options;
    this.#log(`has ${lock.key} with ${lock.fencingToken}`);
    this.here.closed.enter(lock, minHoldMs);
    this.here.believers.add(lock, this.name, this.here.process, options);
  }

  async #leave(lock: LockHandle): Promise<void> {
    this.here.believers.remove(lock);
    await lock.release();
    this.#log(`left ${lock.key} with ${lock.fencingToken}`);
  }

  #options(): AcquireOptions {
    const { random } = this;
    const { ttlMs, ways } = this.here.scenario;
    const options: AcquireOptions = { ttlMs: random.oneOf([ttlMs, ttlMs, ttlMs * 2]), waitMs: random.below(ttlMs * 3) };
    if (ways.watchdogOff && random.chance(0.2)) options.watchdog = false;
    if (ways.maxHold && random.chance(0.2)) options.maxHoldMs = 1 + random.below(ttlMs);
    if (ways.lockDelay && random.chance(0.2)) options.lockDelayMs = random.below(ttlMs);
    if (ways.reentrancy && random.chance(0.7)) options.reentrant = true;
    if (ways.minHold && random.chance(0.4)) options.minHoldMs = random.oneOf([ttlMs / 2, ttlMs * 2]);
    if (ways.unawaited && random.chance(0.3)) options.awaitRelease = false;
    if (ways.signals && random.chance(0.8)) options.signal = this.#signal();
    return options;
  }

  /** A caller who calls off takes the others along, at a later step of the same instant. */
  #signal(): AbortSignal {
    const { aborts, process, scenario } = this.here;
    const abort = new AbortController();
    aborts.add(abort);
    const onTime = async (): Promise<void> => {
      abort.abort(new CalledOff());
      for (let steps = this.random.below(MOST_STEPS); steps > 0; steps -= 1) await Promise.resolve();
      for (const other of aborts) other.abort(new CalledOff());
      aborts.clear();
    };
    process.clock.schedule(this.random.below(scenario.ttlMs), () => void onTime());
    return abort.signal;
  }

  /** Waiting, working and giving back, each with the request that may be under way, and what the process slept through. */
  #assertSettled(way: string, since: number, { waitMs = 0, ttlMs = 0, lockDelayMs = 0 }: AcquireOptions): void {
    const { scenario, time, process } = this.here;
    const tookMs = time.now - since - process.frozenSince(since);
    const asksMs = (way === 'try' ? 0 : waitMs) + scenario.patienceMs + 2 * scenario.weather.requestTimeoutMs;
    const insideMs = 2 * scenario.ttlMs * 1.5 + scenario.weather.requestTimeoutMs + scenario.patienceMs;
    const mostMs = (asksMs + insideMs + ttlMs + lockDelayMs) * 1.01 + SLACK_MS;
    if (tookMs > mostMs) this.here.violate(`${this.name}: ${way} took ${tookMs} ms, more than ${mostMs}`);
  }

  #log(line: string): void {
    this.here.log(`${this.name} ${line}`);
  }
}

class WorkError extends Error {}
class CalledOff extends Error {}

const EXPECTED = new Set(['LOCK_TIMEOUT', 'LOCK_LOST', 'LOCK_BACKEND', 'LOCK_DEADLOCK']);

function isExpected(error: unknown): boolean {
  if (error instanceof WorkError || error instanceof CalledOff) return true;
  return error instanceof Error && 'code' in error && EXPECTED.has(String(error.code));
}

function describe(options: AcquireOptions): string {
  const { signal, ...rest } = options;
  return JSON.stringify(signal ? { ...rest, signal: 'aborts' } : rest);
}
