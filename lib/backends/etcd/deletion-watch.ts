import { systemClock } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';
import { type Watch, type WatchedKeys, WatchStream } from './transport/watch-stream.js';

/** Pause between the end of a stream and the wake-up of its waiters. Each stream that ends early doubles the pause. */
const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 1_000;

/**
 * Wakes waiters when keys are deleted, over one stream for all waiters. A broken stream or a compacted revision also
 * wakes the waiters. Each waiter then reads its queue again. No watch is ever resumed.
 */
export class DeletionWatch {
  #stream: WatchStream | undefined;
  #openedAt = -Infinity;
  #pauseMs = MIN_PAUSE_MS;

  constructor(private readonly client: EtcdClient) {}

  /**
   * Calls `wake` at most once, when a key may have been deleted since `fromRevision`. A write calls `wake` too if
   * `keys` is a single key.
   */
  watchDeletion(keys: WatchedKeys, fromRevision: bigint, wake: () => void): Watch {
    if (this.#stream?.isCurrent !== true) {
      this.#stream?.retire();
      this.#stream = this.#open();
    }
    return this.#stream.watch(keys, fromRevision, wake);
  }

  #open(): WatchStream {
    this.#openedAt = systemClock.now();
    const stream = new WatchStream(this.client, (reason, wakeCallbacks) => this.#onStreamEnd(reason, wakeCallbacks));
    // A stream that lasts for the longest pause shows that watches work again.
    const clearAdvice = (): void => {
      if (stream.isCurrent) this.client.health.setAdvice('watch', undefined);
    };
    if (this.#pauseMs === MAX_PAUSE_MS) systemClock.schedule(MAX_PAUSE_MS, clearAdvice, { background: true });
    return stream;
  }

  /** Warns in `health` when streams keep ending: a proxy may forward requests, but refuse streams or soon end them. */
  #onStreamEnd(reason: string, wakeCallbacks: readonly (() => void)[]): void {
    const hasLasted = systemClock.now() - this.#openedAt >= MAX_PAUSE_MS;
    this.#pauseMs = hasLasted ? MIN_PAUSE_MS : Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    const advice = `watches end as soon as they begin, and waiters look every second instead: ${reason}`;
    this.client.health.setAdvice('watch', this.#pauseMs === MAX_PAUSE_MS ? advice : undefined);
    systemClock.schedule(this.#pauseMs, () => {
      for (const wake of wakeCallbacks) wake();
    });
  }
}
