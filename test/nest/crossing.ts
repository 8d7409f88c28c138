import type { LockEvents, LockObserver } from 'nestjs-distributed-lock';

/**
 * A place that only one caller may be in. The first stays until everybody who is expected is inside or waits for the lock,
 * so that whoever is not locked out is seen: no sleeping, no luck.
 */
export class Crossing implements LockObserver {
  /** The most callers that were inside at once. */
  most = 0;
  /** The key of every lock that was taken. */
  readonly keys: string[] = [];
  releases = 0;
  #inside = 0;
  #waiting = 0;
  readonly #everybody = new Deferred();

  constructor(private readonly expected = 1) {}

  waiting(): void {
    this.#waiting += 1;
    this.#look();
  }

  acquired({ key }: LockEvents['acquired']): void {
    this.keys.push(key);
  }

  released(): void {
    this.releases += 1;
  }

  async cross<T>(result: T): Promise<T> {
    this.#inside += 1;
    this.most = Math.max(this.most, this.#inside);
    this.#look();
    await this.#everybody.promise;
    this.#inside -= 1;
    return result;
  }

  #look(): void {
    if (this.#waiting + this.#inside >= this.expected) this.#everybody.resolve();
  }
}

export class Deferred<T = void> {
  resolve: (value: T) => void = () => undefined;
  readonly promise = new Promise<T>((resolve) => (this.resolve = resolve));
}

/** `count` calls at once. */
export function together<T>(count: number, call: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => call(index)));
}
