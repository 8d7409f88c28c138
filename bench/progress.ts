/** One line on standard error: what is being measured, and how long all the rest will take. */
export class Progress {
  #left: number[] = [];
  #startedAt = performance.now();
  #done = 0;

  constructor(private readonly out: NodeJS.WriteStream) {}

  /** How many seconds each step will take, about. */
  expect(seconds: readonly number[]): void {
    this.#left = [...seconds];
    this.#startedAt = performance.now();
  }

  begin(step: string): void {
    const left = this.#left.reduce((sum, seconds) => sum + seconds, 0);
    const elapsed = (performance.now() - this.#startedAt) / 1_000;
    // The estimates are only as good as the machine is fast.
    const factor = this.#done > 0 ? elapsed / this.#done : 1;
    const minutes = Math.ceil((left * factor) / 60);
    const line = `${step}, about ${minutes} min left`;
    this.out.write(this.out.isTTY ? `\r\u001b[K${line}` : `${line}\n`);
  }

  end(): void {
    this.#done += this.#left.shift() ?? 0;
    if (this.out.isTTY && this.#left.length === 0) this.out.write('\r\u001b[K');
  }
}
