import type { Clock, Timer } from '../../core/index.js';

interface SessionRequest<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
  readonly patience: Timer;
}

/** Requests for a session. Each ends with the session, with a failure, or when its patience is over. */
export class SessionRequests<T> {
  readonly #open = new Set<SessionRequest<T>>();

  constructor(private readonly clock: Clock) {}

  wait(patienceMs: number, impatience: () => Error): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const onTime = (): void => {
        this.#open.delete(request);
        reject(impatience());
      };
      const request = { resolve, reject, patience: this.clock.schedule(patienceMs, onTime) };
      this.#open.add(request);
    });
  }

  resolveAll(value: T): void {
    for (const { resolve } of this.#takeAll()) resolve(value);
  }

  rejectAll(error: Error): void {
    for (const { reject } of this.#takeAll()) reject(error);
  }

  #takeAll(): readonly SessionRequest<T>[] {
    const all = [...this.#open];
    this.#open.clear();
    for (const { patience } of all) patience.cancel();
    return all;
  }
}
