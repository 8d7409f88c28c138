/** Counts the sold pieces, and wakes the waiters for a number of them. */
export class Progress {
  #sold = 0;
  readonly #ended = new AbortController();
  readonly #waiting = new Set<{ readonly sold: number; readonly wake: () => void }>();

  get sold(): number {
    return this.#sold;
  }

  /** Signal that aborts when no more will be sold. */
  get endSignal(): AbortSignal {
    return this.#ended.signal;
  }

  recordSale(): void {
    this.#sold += 1;
    this.#wake();
  }

  end(): void {
    this.#ended.abort();
    this.#wake();
  }

  /** Waits until so many pieces are sold. Resolves to false when no more will be sold before. */
  async waitForSales(sold: number): Promise<boolean> {
    if (this.#sold < sold && !this.endSignal.aborted) {
      await new Promise<void>((wake) => this.#waiting.add({ sold, wake }));
    }
    return this.#sold >= sold;
  }

  #wake(): void {
    for (const waiting of this.#waiting) {
      if (waiting.sold > this.#sold && !this.endSignal.aborted) continue;
      this.#waiting.delete(waiting);
      waiting.wake();
    }
  }
}
