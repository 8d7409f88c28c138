import type * as Core from 'nestjs-distributed-lock/core';
import { Believers } from './believers.js';
import { Caller } from './caller.js';
import { ClosedKeys } from './closed-keys.js';
import { HAND_OFF_BITS } from '../../lib/core/options/hand-off-options.js';
import { Random } from '../support/random.js';
import type { Scenario } from './scenario.js';
import { SimulatedLink } from './simulated-link.js';
import { SimulatedServer } from './simulated-server.js';
import { VirtualProcess, VirtualTime } from './virtual-time.js';

/** The core under test: ours, or a mutant of it. */
export type CoreUnderTest = Pick<typeof Core, 'LockService' | 'LockBackend'>;

/** Clocks run at rates up to 0.9 % apart. */
const LARGEST_RATE_ERROR = 0.0045;

/** How a run ended; without violations all was well. */
export interface Outcome {
  readonly violations: readonly string[];
  readonly history: readonly string[];
  readonly grants: number;
}

/** Several lock services over one store in one process, in virtual time, where everything that can go wrong does. */
export async function simulate(core: CoreUnderTest, scenario: Scenario): Promise<Outcome> {
  const world = new World(core, scenario);
  const onRejection = (error: unknown): void => world.violate(`unhandled rejection: ${String(error)}`);
  process.on('unhandledRejection', onRejection);
  try {
    await world.run();
  } catch (error) {
    world.violate(String(error));
  } finally {
    process.off('unhandledRejection', onRejection);
  }
  return world;
}

class World implements Outcome {
  readonly violations: string[] = [];
  readonly history: string[] = [];
  grants = 0;
  readonly #random: Random;
  readonly #time: VirtualTime;
  readonly #server: SimulatedServer;
  readonly #believers: Believers;
  readonly #closed: ClosedKeys;
  readonly #processes: { readonly process: VirtualProcess; readonly locks: Core.LockService }[] = [];

  constructor(
    private readonly core: CoreUnderTest,
    private readonly scenario: Scenario,
  ) {
    this.#random = new Random(scenario.seed + 1);
    this.#time = new VirtualTime(this.#random, () => this.#believers.check());
    this.#believers = new Believers(this.#time, (what) => this.violate(what));
    this.#closed = new ClosedKeys(this.#time, (what) => this.violate(what));
    const rate = this.#rate();
    this.#server = new SimulatedServer(
      () => this.#time.now * rate,
      scenario.store === 'session',
      scenario.serverFaults,
      (key, token) => {
        this.#believers.onFreed(key, token);
        this.#closed.onFreed(key, token);
      },
      (key, token) => this.#closed.onGranted(key, token),
    );
    for (let number = 0; number < scenario.processes; number += 1) this.#addProcess(number);
  }

  violate(what: string): void {
    this.#log(`VIOLATION ${what}`);
    this.violations.push(what);
  }

  async run(): Promise<void> {
    const { durationMs, ttlMs } = this.scenario;
    const calls = this.#processes.flatMap((_, index) => this.#callers(index));
    let settled = false;
    const all = Promise.all(calls).finally(() => (settled = true));
    all.catch((error: unknown) => this.violate(String(error)));
    this.#planTroubles();
    await this.#time.runUntil(durationMs);
    // The quiet: no more troubles, and time for all that is under way.
    await this.#time.runUntil(durationMs + ttlMs * 40 + 20_000);
    if (!settled) this.violate('a call never settles');
    this.#assertNothingLeft();
    await this.#close();
  }

  #callers(index: number): Promise<void>[] {
    const { process, locks } = this.#processes[index] ?? never();
    const aborts = new Set<AbortController>();
    return Array.from({ length: this.scenario.callers }, (_, number) => {
      const here = {
        scenario: this.scenario,
        time: this.#time,
        process,
        locks,
        aborts,
        believers: this.#believers,
        closed: this.#closed,
        log: (line: string) => this.#log(line),
        violate: (what: string) => this.violate(what),
      };
      return new Caller(`${process.name}.${number}`, new Random(this.#random.below(2 ** 31)), here).run();
    });
  }

  #addProcess(number: number): void {
    const { patienceMs, pollMs, maxHandOffs } = this.scenario;
    const process = new VirtualProcess(`p${number}`, this.#time, this.#rate(), this.#random);
    const violate = (what: string): void => this.violate(`${process.name}: ${what}`);
    const link = new SimulatedLink(this.#server, process, this.#time, this.#random, this.scenario, violate);
    const random = new Random(this.#random.below(2 ** 31));
    const backend = new this.core.LockBackend(link, { pollMs, patienceMs, random: () => random.fraction() });
    const locks: Core.LockService = new this.core.LockService(backend, {
      clock: process.clock,
      maxHandOffs,
      observers: [
        {
          acquired: ({ key, fencingToken, from }) => {
            this.grants += 1;
            if (from !== 'hand-off') return;
            link.releasing.delete(key);
            const hold = locks.inspect().find((snapshot) => snapshot.key === key);
            if (Number(BigInt.asUintN(Number(HAND_OFF_BITS), fencingToken)) > maxHandOffs) {
              this.violate(`${process.name}: ${key} was handed on more than ${maxHandOffs} times`);
            }
            if (hold?.state !== 'held') this.violate(`${process.name}: ${key} was handed on in ${hold?.state}`);
          },
          released: ({ key }) => link.releasing.set(key, this.#time.now),
          lost: ({ key, reason }) => this.#log(`${process.name} lost ${key}: ${reason}`),
        },
      ],
    });
    this.#processes.push({ process, locks });
  }

  #planTroubles(): void {
    const { durationMs, ttlMs, freezes, absences } = this.scenario;
    for (let times = 0; times < freezes; times += 1) {
      const { process } = this.#random.oneOf(this.#processes);
      const ms = this.#random.fraction() * ttlMs * 2;
      this.#time.at(this.#random.fraction() * durationMs, () => {
        this.#log(`${process.name} stands still for ${ms}`);
        process.freeze(ms);
      });
    }
    for (let times = 0; times < absences; times += 1) {
      const from = this.#random.fraction() * durationMs;
      this.#time.at(from, () => this.#setServer(false));
      this.#time.at(from + this.#random.fraction() * ttlMs * 2, () => this.#setServer(true));
    }
  }

  #setServer(up: boolean): void {
    this.#log(`the server ${up ? 'is back' : 'goes away'}`);
    this.#server.up = up;
  }

  #assertNothingLeft(): void {
    const { left: onServer } = this.#server;
    if (onServer.length > 0) this.violate(`still on the server: ${onServer.join(', ')}`);
    for (const { process, locks } of this.#processes) {
      const [left] = locks.inspect();
      if (left) this.violate(`${process.name} still has ${left.key}`);
    }
    for (const when of this.#time.left) this.violate(`left for ${when}`);
  }

  async #close(): Promise<void> {
    const closing = Promise.all(this.#processes.map(({ locks }) => locks.close()));
    await this.#time.runUntil(this.#time.now + 60_000);
    await closing;
  }

  #rate(): number {
    const { seed } = this.scenario;
    // Half of the worlds have the worst clocks there may be.
    if (seed % 2 === 0) return 1 + (this.#random.chance(0.5) ? 1 : -1) * LARGEST_RATE_ERROR;
    return 1 + (this.#random.fraction() * 2 - 1) * LARGEST_RATE_ERROR;
  }

  #log(line: string): void {
    this.history.push(`${this.#time.now.toFixed(1).padStart(9)} ${line}`);
  }
}

function never(): never {
  throw new RangeError('there is no such process');
}
