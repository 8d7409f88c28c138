import { type Clock, systemClock, type Timer } from '../time/timers.js';

/** Milliseconds between the end of a lease and the next request for its key, because the server's clock may be late. */
export const DELAY_AFTER_EXPIRY_MS = 5;

interface Waiter {
  readonly wake: () => void;
  timer?: Timer;
}

/** Wakes waiting callers of this process when a message from the server names their owner. */
export class WakeUps {
  readonly #clock: Clock;
  readonly #waitersByOwner = new Map<string, Waiter>();
  #onUnknownOwner: (owner: string) => void = () => undefined;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  has(owner: string): boolean {
    return this.#waitersByOwner.has(owner);
  }

  get isAnyWaiting(): boolean {
    return this.#waitersByOwner.size > 0;
  }

  watch(owner: string, wake: () => void): () => void {
    const waiter: Waiter = { wake };
    this.#waitersByOwner.set(owner, waiter);
    return () => {
      waiter.timer?.cancel();
      this.#waitersByOwner.delete(owner);
    };
  }

  /** Sets the listener to messages whose owner does not wait in this process. */
  setNonWaiterListener(listener: (owner: string) => void): void {
    this.#onUnknownOwner = listener;
  }

  wakeAll(): void {
    for (const { wake } of this.#waitersByOwner.values()) wake();
  }

  /**
   * Wakes the waiter that a message of the form `owner|milliseconds` names, after these milliseconds. The waiter then
   * asks again, since the key may be free.
   */
  deliver(message: string): void {
    const separatorIndex = message.lastIndexOf('|');
    const owner = message.slice(0, separatorIndex);
    const waiter = this.#waitersByOwner.get(owner);
    if (!waiter) return this.#onUnknownOwner(owner);
    const delayMs = Number(message.slice(separatorIndex + 1));
    waiter.timer?.cancel();
    if (delayMs === 0) waiter.wake();
    else waiter.timer = this.#clock.schedule(delayMs + DELAY_AFTER_EXPIRY_MS, waiter.wake);
  }
}
