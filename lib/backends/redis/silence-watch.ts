import type { Clock, Timer } from '../../core/index.js';
import { LinkedQueue } from '../../core/linked-queue.js';
import type { Batch } from './batch.js';

/** The batches under way, and one timer for the oldest of them: most are answered without having touched a timer. Needs no closing. */
export class SilenceWatch {
  readonly #underWay = new LinkedQueue<Batch>();
  #timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly onSilence: (overdue: Batch) => void,
  ) {}

  add(batch: Batch): void {
    this.#underWay.push(batch);
    if (!this.#timer) this.#setTimer(batch);
  }

  delete(batch: Batch): void {
    this.#underWay.delete(batch);
  }

  #setTimer({ dueAt }: Batch): void {
    // After a blocked event loop timers come before the answers that have arrived meanwhile: those are read first.
    const look = (): void => void setImmediate(this.#look);
    this.#timer = this.clock.schedule(dueAt - this.clock.now(), look, { background: true });
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    const now = this.clock.now();
    for (;;) {
      const oldest = this.#underWay.first;
      if (!oldest) return;
      if (oldest.dueAt > now) return this.#setTimer(oldest);
      this.#underWay.delete(oldest);
      this.onSilence(oldest);
    }
  };
}
