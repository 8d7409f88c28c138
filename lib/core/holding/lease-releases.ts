import type { Observers } from '../events/observers.js';
import { beginAwaited, endAwaited } from '../kit/awaited-promises.js';
import { WaitGroup } from '../kit/wait-group.js';
import type { Hold } from './hold.js';
import { type Clock, pause } from '../time/timers.js';

const nothing = (): void => undefined;

/** Gives the leases of former holds back, and knows what to wait for before the backend closes. */
export class LeaseReleases {
  /** Requests to the backend that are under way. */
  readonly underWay = new WaitGroup();

  constructor(
    private readonly clock: Clock,
    private readonly observers: Observers,
    /** Aborts when nobody may get a lock any more. */
    private readonly stopped: AbortSignal,
  ) {}

  /**
   * Never rejects.
   * @param onOver is called when the next caller may ask for the key
   * @param early which is as soon as the release is sent, because the store keeps the order of what it is asked
   */
  release(hold: Hold, onOver: () => void = nothing, early = false): Promise<void> {
    this.#begin();
    const { watchdog } = hold;
    const renewal = watchdog.stop();
    if (!renewal) return this.#send(hold, 0, onOver, early);
    return renewal.then(() => this.#send(hold, 0, onOver, early));
  }

  /**
   * The server keeps the key closed for another `ms`, whatever becomes of this process, which then wakes those who wait.
   * Never rejects.
   */
  async keep(hold: Hold, ms: number, onOver: () => void = nothing): Promise<void> {
    this.#begin();
    const end = this.clock.now() + ms;
    hold.watchdog.lease.leaveOpen();
    await hold.watchdog.stop();
    await this.#send(hold, Math.max(1, end - this.clock.now()), onOver);
    void this.#releaseAt(end, hold);
  }

  /** A service that is closed leaves the key to the server. */
  async #releaseAt(end: number, hold: Hold): Promise<void> {
    await pause(this.clock, end - this.clock.now(), { background: true, until: this.stopped });
    if (!this.stopped.aborted) await this.release(hold);
  }

  /** Requests of the former holder may still be on their way. When the service is closed, the key is free at once. */
  async releaseLater(hold: Hold): Promise<void> {
    this.underWay.begin();
    await hold.watchdog.stop();
    await pause(this.clock, hold.options.lockDelayMs, { background: true, until: this.stopped });
    await this.release(hold);
    this.underWay.end();
  }

  /** A caller may await it: the process stays until it is over. */
  #begin(): void {
    this.underWay.begin();
    beginAwaited();
  }

  #end(): void {
    this.underWay.end();
    endAwaited();
  }

  /** A release, or what keeps the key closed. A server that says nothing is waited for as long as the lease would last. */
  #send({ key, watchdog }: Hold, keepMs: number, onOver: () => void, early = false): Promise<void> {
    return new Promise((resolve) => {
      let isOver = false;
      const over = (error?: unknown): void => {
        if (isOver) return;
        isOver = true;
        endLimit();
        if (error !== undefined) this.observers.notifyFailure(key, 'release', error);
        this.#end();
        if (!early) onOver();
        resolve();
      };
      const { lease } = watchdog;
      const endLimit = watchdog.limit(() => over(new Error(`no answer within ${lease.ttlMs} ms`)));
      (keepMs > 0 ? lease.keepFor(keepMs) : lease.release()).then(() => over(), over);
      if (early) onOver();
    });
  }
}
