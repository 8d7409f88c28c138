/** Counts tasks under way, so that a caller can wait until none is left. */
export class WaitGroup {
  #taskCount = 0;
  #idleListeners: (() => void)[] = [];

  begin(): void {
    this.#taskCount += 1;
  }

  end(): void {
    this.#taskCount -= 1;
    if (this.#taskCount > 0) return;
    for (const resolve of this.#idleListeners.splice(0)) resolve();
  }

  /** Also waits for tasks that begin after this method in the same synchronous call, as when an observer calls it. */
  async waitUntilIdle(): Promise<void> {
    await Promise.resolve();
    while (this.#taskCount > 0) await new Promise<void>((resolve) => this.#idleListeners.push(resolve));
  }
}
