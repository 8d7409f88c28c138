import { AbortListener } from '../time/abort-listener.js';
import type { Holder } from '../contract/holder.js';
import type { Clock } from '../time/timers.js';

/** Streams of who leads. Readers pull, so that nothing is kept for one that does not ask. */
export class Changes {
  readonly #sleepers = new Set<() => void>();
  /** Grows with each change that this process learns of without a reading. */
  #version = 0;
  #hasEnded = false;

  constructor(
    private readonly clock: Clock,
    private readonly ttlMs: number,
    private readonly readLeader: () => Promise<Holder | undefined> | Holder,
  ) {}

  /** Notes a change that this process learned of. */
  note(): void {
    this.#version += 1;
    for (const wake of this.#sleepers) wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.note();
  }

  /** Returns a stream that ends with `signal`, and at once with the reader, also while it waits for the next change. */
  stream(signal?: AbortSignal): AsyncIterableIterator<Holder | undefined> {
    const left = new AbortController();
    const read = this.#read(signal ? [left.signal, signal] : [left.signal]);
    return {
      next: () => read.next(),
      return: () => {
        left.abort();
        return read.return();
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  async *#read(signals: readonly AbortSignal[]): AsyncGenerator<Holder | undefined, void, void> {
    let told: { readonly holder: Holder | undefined } | undefined;
    let knownUntil = -Infinity;
    const isOver = (): boolean => this.#hasEnded || signals.some(({ aborted }) => aborted);
    while (!isOver()) {
      const version = this.#version;
      let holder = told?.holder;
      try {
        holder = await this.readLeader();
        knownUntil = this.clock.now() + this.ttlMs;
      } catch {
        // Observers have heard of the failure. A leader of that time would have had to renew since.
        if (this.clock.now() >= knownUntil) holder = undefined;
      }
      if (isOver()) return;
      // A reading from before a change here may be older than the change.
      if (version !== this.#version) continue;
      if (!told || !isSame(told.holder, holder)) {
        told = { holder };
        yield holder;
      }
      if (version === this.#version && !isOver()) await this.#sleep(signals);
    }
  }

  #sleep(signals: readonly AbortSignal[]): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(wake);
        timer.cancel();
        for (const listener of listeners) listener.end();
        resolve();
      };
      const timer = this.clock.schedule(this.ttlMs / 3, wake, { background: true });
      const listeners = signals.map((signal) => new AbortListener(signal, wake));
      this.#sleepers.add(wake);
    });
  }
}

function isSame(a: Holder | undefined, b: Holder | undefined): boolean {
  return a?.host === b?.host && a?.pid === b?.pid && a?.label === b?.label;
}
