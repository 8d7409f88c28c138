import { beginAwaited, endAwaited } from '../kit/awaited-promises.js';
import { TimerWheel, WheelTimer } from '../time/timer-wheel.js';
import { pause } from '../time/timers.js';
import type { Hold } from './hold.js';
import type { ServiceContext } from './service-context.js';

const doNothing = (): void => undefined;

/** Releases the leases of holds that are over. Its methods never reject: observers hear of a failure. */
export class LeaseReleases {
  readonly #wheel: TimerWheel;

  constructor(private readonly service: ServiceContext) {
    this.#wheel = TimerWheel.of(service.clock);
  }

  /**
   * Releases the hold's lease.
   * @param onOver is called when the next caller may ask for the key
   * @param isEarly whether that is as soon as the release is sent, because the store keeps the order of its requests
   */
  release(hold: Hold, onOver: () => void = doNothing, isEarly = false): Promise<void> {
    this.#begin();
    const renewal = hold.watchdog.stop();
    if (!renewal) return this.#send(hold, 0, onOver, isEarly);
    return renewal.then(() => this.#send(hold, 0, onOver, isEarly));
  }

  /**
   * Has the server keep the key closed for a time, whatever becomes of this process, which then releases it. A service
   * that is closed leaves that to the server.
   */
  async keepClosed(hold: Hold, ms: number, onOver: () => void = doNothing): Promise<void> {
    this.#begin();
    const { clock } = this.service;
    const end = clock.now() + ms;
    hold.watchdog.lease.leaveOpen();
    await hold.watchdog.stop();
    await this.#send(hold, Math.max(1, end - clock.now()), onOver, false);
    void this.#releaseAt(end, hold);
  }

  /**
   * Releases the lease after its lock-delay, since requests of the former holder may still be on their way. The end of
   * the service ends the delay.
   */
  async releaseLater(hold: Hold): Promise<void> {
    const { clock, stopped, underWay } = this.service;
    underWay.begin();
    await hold.watchdog.stop();
    await pause(clock, hold.options.lockDelayMs, { background: true, until: stopped });
    await this.release(hold);
    underWay.end();
  }

  async #releaseAt(end: number, hold: Hold): Promise<void> {
    const { clock, stopped } = this.service;
    await pause(clock, end - clock.now(), { background: true, until: stopped });
    if (!stopped.aborted) await this.release(hold);
  }

  /** Keeps the process alive, too: a caller may await the release. */
  #begin(): void {
    this.service.underWay.begin();
    beginAwaited();
  }

  #end(): void {
    this.service.underWay.end();
    endAwaited();
  }

  /** Sends a release, or a request that keeps the key closed. Waits for an answer as long as the lease would last. */
  #send({ key, watchdog: { lease } }: Hold, keepMs: number, onOver: () => void, isEarly: boolean): Promise<void> {
    return new Promise((resolve) => {
      let isOver = false;
      const end = (error?: unknown): void => {
        if (isOver) return;
        isOver = true;
        timeout.cancel();
        if (error !== undefined) this.service.observers.notifyFailure(key, 'release', error);
        this.#end();
        if (!isEarly) onOver();
        resolve();
      };
      const { keptMs } = lease.times;
      const timeout = new WheelTimer(this.#wheel, () => end(new Error(`no answer within ${keptMs} ms`)));
      timeout.setFrom(this.service.clock.now() + keptMs, keptMs / 8);
      (keepMs > 0 ? lease.keepFor(keepMs) : lease.release()).then(() => end(), end);
      if (isEarly) onOver();
    });
  }
}
