import { systemClock, type Timer } from '../../../core/index.js';

/** Maximum idle milliseconds of a connection that is used again. The network may have dropped an older one. */
export const MAX_IDLE_MS = 30_000;

/**
 * Closes idle connections after a while, in the background: an open connection keeps a serverless database awake, and a
 * database that falls asleep ends it.
 */
export class IdleCheck {
  #timer: Timer | undefined;

  /** @param closeUnused returns whether connections remain that may have to be closed later */
  constructor(private readonly closeUnused: () => boolean) {}

  /** Does nothing while a check is already scheduled. */
  schedule(): void {
    this.#timer ??= systemClock.schedule(MAX_IDLE_MS, () => this.#run(), { background: true });
  }

  cancel(): void {
    this.#timer?.cancel();
  }

  #run(): void {
    this.#timer = undefined;
    if (this.closeUnused()) this.schedule();
  }
}
