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

const USUAL_MS = 15;

/** One process' way to the server: messages are lost, late, and out of order. */
export class SimulatedLink implements LeaseStore {
  readonly name = 'simulated';
  readonly guarantee = 'durable';
  watch?: NonNullable<LeaseStore['watch']>;

  constructor(
    private readonly server: SimulatedServer,
    private readonly process: VirtualProcess,
    private readonly time: VirtualTime,
    private readonly random: Random,
    private readonly weather: Weather,
    wakes: boolean,
  ) {
    if (wakes) this.watch = (key, owner, wake) => server.watch(key, owner, () => this.#carry(wake, process));
  }

  tryAcquire(key: string, owner: string, ttlMs: number): Promise<LeaseAttempt> {
    return this.#ask(() => this.server.tryAcquire(key, owner, ttlMs));
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#ask(() => this.server.renew(key, owner, ttlMs));
  }

  release(key: string, owner: string): Promise<boolean> {
    return this.#ask(() => this.server.release(key, owner));
  }

  async close(): Promise<void> {}

  #ask<T>(request: () => T): Promise<T> {
    const { stalled, stallMs } = this.weather;
    if (this.random.chance(stalled)) this.process.freeze((0.5 + this.random.fraction()) * stallMs);
    return new Promise((resolve, reject) => {
      const { clock } = this.process;
      // Answers that have arrived during a blocked event loop are read first, as every store of ours does.
      const silence = clock.schedule(this.weather.requestTimeoutMs, () => {
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
    const { lost, slow, longestMs } = this.weather;
    if (this.random.chance(lost)) return;
    const delay = 0.2 + this.random.fraction() * (this.random.chance(slow) ? longestMs : USUAL_MS);
    this.time.at(this.time.now + delay, deliver, to);
  }
}
