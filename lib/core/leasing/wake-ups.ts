import { type Clock, systemClock, type Timer } from '../time/timers.js';

/** Margin for the server's clock, which may be late: after it the lease has expired there, too. */
export const AFTER_EXPIRY_MS = 5;

interface Waiter {
  readonly wake: () => void;
  alarm?: Timer;
}

/** Wakes callers of this process by messages from a server that name an owner. */
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

  get isAnyWaiting(): boolean {
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

  /** Calls `listener` when a message names an owner who does not wait, or does not wait any more. */
  onStray(listener: (owner: string) => void): void {
    this.#onStray = listener;
  }

  wakeAll(): void {
    for (const { wake } of this.#byOwner.values()) wake();
  }

  /**
   * Wakes the owner that a message names. It is `owner|milliseconds`: after that time the key may be free, and with 0 it
   * is the owner's. A message is only a hint to ask.
   */
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
