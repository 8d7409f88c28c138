import type { LeaseAttempt, LeaseStore } from 'nestjs-distributed-lock/core';
import type { Random } from '../support/random.js';
import type { SimulatedServer } from './simulated-server.js';
import type { VirtualProcess, VirtualTime } from './virtual-time.js';

/** How bad the network is. */
export interface Weather {
  /** The share of messages that never arrive. */
  readonly lost: number;
  /** The share of messages that take up to `longestMs`. The others take up to 15 ms. */
  readonly slow: number;
  readonly longestMs: number;
  /** The share of requests after which their process stands still, for about `stallMs`. */
  readonly stalled: number;
  readonly stallMs: number;
  /** How long a client waits for an answer. */
  readonly requestTimeoutMs: number;
}

/** A scenario, as far as it is the link's. */
export interface LinkScenario {
  readonly weather: Weather;
  /** Which requests overtake others, and whether leases run out by themselves. */
  readonly store: 'unordered' | 'ordered' | 'session';
  /** Whether the server tells those who wait, as far as its messages arrive. */
  readonly wakes: boolean;
  readonly ttlMs: number;
  readonly durationMs: number;
}

const USUAL_MS = 15;
const CALM = { lost: 0, slow: 0, stalled: 0 };

/** One process' way to the server: messages are lost, late, and out of order, except where the store keeps it. */
export class SimulatedLink implements LeaseStore {
  readonly name = 'simulated';
  readonly guarantee = 'durable';
  readonly traits: { readonly keepsOrder: boolean; readonly endsWith: 'ttl' | 'session' };
  watch?: NonNullable<LeaseStore['watch']>;
  /** The keys that a holder has just released, and since when. */
  readonly releasing = new Map<string, number>();
  #lastArrival = 0;

  constructor(
    private readonly server: SimulatedServer,
    private readonly process: VirtualProcess,
    private readonly time: VirtualTime,
    private readonly random: Random,
    private readonly scenario: LinkScenario,
    private readonly violate: (what: string) => void,
  ) {
    const endsWith = scenario.store === 'session' ? 'session' : 'ttl';
    this.traits = { keepsOrder: scenario.store !== 'unordered', endsWith };
    if (scenario.wakes) this.watch = (key, owner, wake) => server.watch(key, owner, () => this.#carry(wake, process));
  }

  tryAcquire(key: string, owner: string, ttlMs: number): Promise<LeaseAttempt> {
    const releasingMs = this.time.now - (this.releasing.get(key) ?? -Infinity);
    // A release that nothing answers is waited for as long as the lease would last.
    if (!this.traits.keepsOrder && releasingMs < this.scenario.ttlMs * 0.9)
      this.violate(`${key}: asked for during its release`);
    return this.#ask(() => this.server.tryAcquire(key, owner, ttlMs));
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    // After a release, it is what keeps the key closed.
    const isLast = this.releasing.has(key);
    return this.#ask(() => this.server.renew(key, owner, ttlMs)).finally(() => isLast && this.releasing.delete(key));
  }

  release(key: string, owner: string): Promise<boolean> {
    return this.#ask(() => this.server.release(key, owner)).finally(() => this.releasing.delete(key));
  }

  async close(): Promise<void> {}

  get #weather(): Weather {
    const { weather, durationMs } = this.scenario;
    return this.time.now < durationMs ? weather : { ...weather, ...CALM };
  }

  #ask<T>(request: () => T): Promise<T> {
    const { stalled, stallMs, requestTimeoutMs } = this.#weather;
    if (this.random.chance(stalled)) this.process.freeze((0.5 + this.random.fraction()) * stallMs);
    return new Promise((resolve, reject) => {
      const { clock } = this.process;
      // Answers that have arrived during a blocked event loop are read first, as every store of ours does.
      const silence = clock.schedule(requestTimeoutMs, () => {
        setImmediate(() => reject(new Error('no answer')));
      });
      const answered = (settle: () => void) => () => {
        silence.cancel();
        settle();
      };
      this.#carry(() => {
        if (!this.server.up)
          return this.#carry(
            answered(() => reject(new Error('refused'))),
            this.process,
          );
        const answer = request();
        return this.#carry(
          answered(() => resolve(answer)),
          this.process,
        );
      });
    });
  }

  #carry(deliver: () => void, to?: VirtualProcess): void {
    const { lost, slow, longestMs } = this.#weather;
    if (this.random.chance(lost)) return;
    const delay = 0.2 + this.random.fraction() * (this.random.chance(slow) ? longestMs : USUAL_MS);
    const inOrder = this.traits.keepsOrder && !to;
    const arrival = Math.max(this.time.now + delay, inOrder ? this.#lastArrival : 0);
    if (inOrder) this.#lastArrival = arrival;
    this.time.at(arrival, deliver, to);
  }
}
