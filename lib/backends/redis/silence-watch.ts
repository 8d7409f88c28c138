import type { Clock, Timer } from '../../core/index.js';
import type { Batch } from './batch.js';

/** The batches under way, and one timer for the oldest of them: most are answered without having touched a timer. Needs no closing. */
export class SilenceWatch {
  /** The oldest first. */
  readonly #underWay = new Set<Batch>();
  #timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly onSilence: (overdue: Batch) => void,
  ) {}

  add(batch: Batch): void {
    this.#underWay.add(batch);
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
    for (const batch of this.#underWay) {
      if (batch.dueAt <= now) this.onSilence(batch);
      else if (!this.#timer) this.#setTimer(batch);
    }
  };
}
