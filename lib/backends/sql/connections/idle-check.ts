import { systemClock, type Timer } from '../../../core/index.js';

/** Milliseconds for which an idle connection may be used again. Later, the network may have dropped the connection. */
export const MAX_IDLE_MS = 30_000;

/**
 * Closes idle connections in the background. An open connection keeps a serverless database awake, and a database that
 * falls asleep ends the connection.
 */
export class IdleCheck {
  #timer: Timer | undefined;

  /** @param closeUnused closes idle connections, and returns whether another check is needed later */
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
