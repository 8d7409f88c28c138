/** Line on standard error with the current measurement and the minutes that all the rest will take. */
export class Progress {
  #remainingSeconds: number[] = [];
  #startedAt = performance.now();
  #doneSeconds = 0;

  constructor(private readonly out: NodeJS.WriteStream) {}

  /** Sets the estimated seconds of each step. */
  setEstimates(seconds: readonly number[]): void {
    this.#remainingSeconds = [...seconds];
    this.#startedAt = performance.now();
  }

  beginStep(step: string): void {
    const remaining = this.#remainingSeconds.reduce((sum, seconds) => sum + seconds, 0);
    const elapsed = (performance.now() - this.#startedAt) / 1_000;
    // A slow machine takes longer than all estimates, by about the same factor.
    const slowness = this.#doneSeconds > 0 ? elapsed / this.#doneSeconds : 1;
    const minutes = Math.ceil((remaining * slowness) / 60);
    const line = `${step}, about ${minutes} min left`;
    this.out.write(this.out.isTTY ? `\r\u001b[K${line}` : `${line}\n`);
  }

  endStep(): void {
    this.#doneSeconds += this.#remainingSeconds.shift() ?? 0;
    if (this.out.isTTY && this.#remainingSeconds.length === 0) this.out.write('\r\u001b[K');
  }
}
