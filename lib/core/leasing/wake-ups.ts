import { type Clock, systemClock, type Timer } from '../time/timers.js';

/** Margin by which the server's clock may lag ours. After it the lease has expired there, too. */
export const AFTER_EXPIRY_MS = 5;

interface Waiter {
  readonly wake: () => void;
  alarm?: Timer;
}

/** The callers of this process that wait for a message from a server, by owner. */
export class WakeUps {
  readonly #clock: Clock;
  readonly #byOwner = new Map<string, Waiter>();
  #onStray: (owner: string) => void = () => undefined;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  has(owner: string): boolean {
    return this.#byOwner.has(owner);
  }

  get any(): boolean {
    return this.#byOwner.size > 0;
  }

  watch(owner: string, wake: () => void): () => void {
    const waiter: Waiter = { wake };
    this.#byOwner.set(owner, waiter);
    return () => {
      waiter.alarm?.cancel();
      this.#byOwner.delete(owner);
    };
  }

  /** Calls `listener` when there is a message for an owner who does not wait, or not any more. */
  onStray(listener: (owner: string) => void): void {
    this.#onStray = listener;
  }

  wakeAll(): void {
    for (const { wake } of this.#byOwner.values()) wake();
  }

  /** `owner|milliseconds`: look (again) after so long, 0 = the key is yours. Never more than a wake-up. */
  deliver(message: string): void {
    const bar = message.lastIndexOf('|');
    const owner = message.slice(0, bar);
    const waiter = this.#byOwner.get(owner);
    if (!waiter) return this.#onStray(owner);
    const delayMs = Number(message.slice(bar + 1));
    waiter.alarm?.cancel();
    if (delayMs === 0) waiter.wake();
    else waiter.alarm = this.#clock.schedule(delayMs + AFTER_EXPIRY_MS, waiter.wake);
  }
}
