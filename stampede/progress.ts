/** Counts what is sold, and wakes who waits for a number of pieces. */
export class Progress {
  #sold = 0;
  readonly #over = new AbortController();
  readonly #waiting = new Set<{ readonly sold: number; readonly wake: () => void }>();

  get sold(): number {
    return this.#sold;
  }

  /** Aborts when no more will be sold. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  soldOne(): void {
    this.#sold += 1;
    this.#wake();
  }

  end(): void {
    this.#over.abort();
    this.#wake();
  }

  /** Resolves to false when no more will be sold and the number was not reached. */
  async reached(sold: number): Promise<boolean> {
    if (this.#sold < sold && !this.over.aborted) {
      await new Promise<void>((wake) => this.#waiting.add({ sold, wake }));
    }
    return this.#sold >= sold;
  }

  #wake(): void {
    for (const waiting of this.#waiting) {
      if (waiting.sold > this.#sold && !this.over.aborted) continue;
      this.#waiting.delete(waiting);
      waiting.wake();
    }
  }
}
