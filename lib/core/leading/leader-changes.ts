import { AbortListener } from '../time/abort-listener.js';
import type { Holder } from '../contract/holder.js';
import type { Clock } from '../time/timers.js';

/** Streams of the present leader. Readers pull the values, so that none pile up for a slow reader. */
export class LeaderChanges {
  readonly #wakeCallbacks = new Set<() => void>();
  /** Number of changes that this process learned of without a reading. */
  #version = 0;
  #hasEnded = false;

  constructor(
    private readonly clock: Clock,
    private readonly ttlMs: number,
    private readonly readLeader: () => Promise<Holder | undefined> | Holder,
  ) {}

  noteChange(): void {
    this.#version += 1;
    for (const wake of this.#wakeCallbacks) wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.noteChange();
  }

  /** Returns a stream that ends when `signal` aborts or its reader leaves, even during a wait for a change. */
  createStream(signal?: AbortSignal): AsyncIterableIterator<Holder | undefined> {
    const readerController = new AbortController();
    const reader = this.#readChanges(signal ? [readerController.signal, signal] : [readerController.signal]);
    return {
      next: () => reader.next(),
      return: () => {
        readerController.abort();
        return reader.return();
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  async *#readChanges(signals: readonly AbortSignal[]): AsyncGenerator<Holder | undefined, void, void> {
    let lastYielded: { readonly holder: Holder | undefined } | undefined;
    let leaderKnownUntil = -Infinity;
    const hasEnded = (): boolean => this.#hasEnded || signals.some(({ aborted }) => aborted);
    while (!hasEnded()) {
      const version = this.#version;
      let holder = lastYielded?.holder;
      try {
        holder = await this.readLeader();
        leaderKnownUntil = this.clock.now() + this.ttlMs;
      } catch {
        // The failure was reported to observers. After a TTL without an answer the last known leader may be gone.
        if (this.clock.now() >= leaderKnownUntil) holder = undefined;
      }
      if (hasEnded()) return;
      // A change during the reading may be newer than its result.
      if (version !== this.#version) continue;
      if (!lastYielded || !isSameHolder(lastYielded.holder, holder)) {
        lastYielded = { holder };
        yield holder;
      }
      if (version === this.#version && !hasEnded()) await this.#waitForChange(signals);
    }
  }

  #waitForChange(signals: readonly AbortSignal[]): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#wakeCallbacks.delete(wake);
        timer.cancel();
        for (const listener of listeners) listener.end();
        resolve();
      };
      const timer = this.clock.schedule(this.ttlMs / 3, wake, { background: true });
      const listeners = signals.map((signal) => new AbortListener(signal, wake));
      this.#wakeCallbacks.add(wake);
    });
  }
}

function isSameHolder(a: Holder | undefined, b: Holder | undefined): boolean {
  return a?.host === b?.host && a?.pid === b?.pid && a?.label === b?.label;
}
