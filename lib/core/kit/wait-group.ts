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

  /**
   * Resolves when no task is left. Also waits for tasks that the running synchronous code begins after this call: an
   * observer may end the service in the middle of an acquisition.
   */
  async waitUntilIdle(): Promise<void> {
    await Promise.resolve();
    while (this.#taskCount > 0) await new Promise<void>((resolve) => this.#idleListeners.push(resolve));
  }
}
