import { systemClock } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';
import { type Watch, type Watched, WatchStream } from './transport/watch-stream.js';

/** Pauses before the callers of a stream that ended look again: short, unless streams keep ending. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Tells of keys that go, over one stream for all of them. It is only a wake-up: each caller looks afterwards. A broken
 * stream, or a compacted revision, is therefore told as if the key were gone, and nothing is ever resumed. The new look
 * takes a watch on the present stream. A stream with an older token, or of another connection, soon has none left.
 */
export class DeletionWatch {
  #stream: WatchStream | undefined;
  #openedAt = -Infinity;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(private readonly client: EtcdClient) {}

  /** Calls `wake` at most once, when a key may have gone, or one that is watched alone changed, since `from`. */
  onDeletion(watched: Watched, from: bigint, wake: () => void): Watch {
    if (this.#stream?.current !== true) {
      this.#stream?.retire();
      this.#stream = this.#open();
    }
    return this.#stream.watch(watched, from, wake);
  }

  #open(): WatchStream {
    this.#openedAt = systemClock.now();
    const stream = new WatchStream(this.client, (reason, wakes) => this.#onEnd(reason, wakes));
    const praise = (): void => {
      if (stream.current) this.client.health.advise('watch', undefined);
    };
    if (this.#pauseMs === LONGEST_PAUSE_MS) systemClock.schedule(LONGEST_PAUSE_MS, praise, { background: true });
    return stream;
  }

  /** A proxy may let requests through, but no streams, or none for long. */
  #onEnd(reason: string, wakes: readonly (() => void)[]): void {
    const lasted = systemClock.now() - this.#openedAt >= LONGEST_PAUSE_MS;
    this.#pauseMs = lasted ? FIRST_PAUSE_MS : Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    const advice = `watches end as soon as they begin, and waiters look every second instead: ${reason}`;
    this.client.health.advise('watch', this.#pauseMs === LONGEST_PAUSE_MS ? advice : undefined);
    systemClock.schedule(this.#pauseMs, () => {
      for (const wake of wakes) wake();
    });
  }
}
