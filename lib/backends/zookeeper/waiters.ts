interface Waiter<T> {
  readonly once: boolean;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** Those who wait for one thing, until it is there or somebody says why it is not. */
export class Waiters<T> {
  readonly #waiters = new Set<Waiter<T>>();

  /** `once`: does not wait for another attempt when one has failed. */
  add(once: boolean): { readonly value: Promise<T>; readonly giveUp: (error: Error) => void } {
    let giveUp: (error: Error) => void = () => undefined;
    const value = new Promise<T>((resolve, reject) => {
      const waiter: Waiter<T> = { once, resolve, reject };
      this.#waiters.add(waiter);
      giveUp = (error) => {
        this.#waiters.delete(waiter);
        reject(error);
      };
    });
    return { value, giveUp };
  }

  resolveAll(value: T): void {
    for (const { resolve } of this.#waiters) resolve(value);
    this.#waiters.clear();
  }

  rejectAll(error: Error): void {
    for (const { reject } of this.#waiters) reject(error);
    this.#waiters.clear();
  }

  onFailedAttempt(error: Error): void {
    for (const { once, reject } of this.#waiters) if (once) reject(error);
    for (const waiter of this.#waiters) if (waiter.once) this.#waiters.delete(waiter);
  }
}
