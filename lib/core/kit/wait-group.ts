/** Counts what is under way, for the one who closes and has to wait for it. */
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

  /** Resolves when nothing is under way, and nothing has begun meanwhile. */
  async idle(): Promise<void> {
    while (this.#underWay > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }
}
