import { type Clock, systemClock } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';
import { type Watch, type WatchEnd, WatchStream } from './transport/watch-stream.js';

/** Before those look again whose stream has ended: soon, unless streams keep ending. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Tells of keys that go, over one stream for all of them. No more than a wake-up: whoever is told looks, so a stream
 * that breaks, or a revision that was compacted away, is told as if the key were gone, and nothing ever has to be
 * resumed. Whoever looks takes a watch on the stream of today, so that one with an older token, or of another
 * connection, soon has none left.
 */
export class DeletionWatch {
  #stream: WatchStream | undefined;
  #openedAt = -Infinity;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(
    private readonly client: EtcdClient,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Calls `wake` at most once, when `key` may have gone since the revision `from`. */
  onDeletion(key: string, from: bigint, wake: () => void): Watch {
    if (this.#stream?.current !== true) {
      this.#stream?.retire();
      this.#stream = this.#open();
    }
    return this.#stream.watch(key, from, wake);
  }

  #open(): WatchStream {
    this.#openedAt = this.clock.now();
    const stream = new WatchStream(this.client, (end) => this.#onEnd(end));
    const praise = (): void => {
      if (stream.current) this.client.health.advise('watch', undefined);
    };
    if (this.#pauseMs === LONGEST_PAUSE_MS) this.clock.schedule(LONGEST_PAUSE_MS, praise, { background: true });
    return stream;
  }

  /** A proxy may let requests through, but no streams, or none for long. */
  #onEnd({ reason, wakes }: WatchEnd): void {
    const lasted = this.clock.now() - this.#openedAt >= LONGEST_PAUSE_MS;
    this.#pauseMs = lasted ? FIRST_PAUSE_MS : Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    const advice = `watches end as soon as they begin, and waiters look every second instead: ${reason}`;
    this.client.health.advise('watch', this.#pauseMs === LONGEST_PAUSE_MS ? advice : undefined);
    this.clock.schedule(this.#pauseMs, () => {
      for (const wake of wakes) wake();
    });
  }
}
