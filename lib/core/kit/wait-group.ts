/** Counts tasks that are under way, for a close that has to wait for them. */
export class WaitGroup {
  #underWay = 0;
  #onIdle: (() => void)[] = [];

  begin(): void {
    this.#underWay += 1;
  }

  end(): void {
    this.#underWay -= 1;
    if (this.#underWay > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Resolves when no task is under way. */
  async idle(): Promise<void> {
    while (this.#underWay > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }
}
