import { isLockError, LockLostError } from '../contract/errors.js';
import { beginKeepAlive, endKeepAlive } from '../kit/keep-alive.js';
import { TimerWheel, WheelTimer } from '../time/timer-wheel.js';
import { pause } from '../time/timers.js';
import type { Hold } from './hold.js';
import type { ServiceContext } from './service-context.js';

const doNothing = (): void => undefined;

/** Releases the leases of ended holds. Methods report failures to observers. Only `keepForAdoption` also rejects. */
export class LeaseReleases {
  readonly #wheel: TimerWheel;

  constructor(private readonly service: ServiceContext) {
    this.#wheel = TimerWheel.of(service.clock);
  }

  /**
   * @param endsTurnOnSend whether the next caller may ask as soon as the release is sent, because the store keeps the
   * order of requests
   */
  release(hold: Hold, endTurn: () => void = doNothing, endsTurnOnSend = false): Promise<void> {
    this.#beginRequest();
    const unansweredRenewal = hold.watchdog.stop();
    if (!unansweredRenewal) return this.#releaseOrKeepClosed(hold, 0, endTurn, endsTurnOnSend);
    return unansweredRenewal.then(() => this.#releaseOrKeepClosed(hold, 0, endTurn, endsTurnOnSend));
  }

  /**
   * Has the server keep the key closed for `ms`, even if this process crashes, and then releases the key. After the end
   * of the service only the server's TTL frees the key.
   */
  async keepClosed(hold: Hold, ms: number, endTurn: () => void = doNothing): Promise<void> {
    this.#beginRequest();
    const { clock } = this.service;
    const closedUntil = clock.now() + ms;
    hold.watchdog.lease.cancelAutoRelease();
    await hold.watchdog.stop();
    await this.#releaseOrKeepClosed(hold, Math.max(1, closedUntil - clock.now()), endTurn, false);
    void this.#releaseAt(closedUntil, hold);
  }

  /**
   * Releases the lease after its lock-delay, because requests of the former holder may still arrive. The end of the
   * service ends the delay.
   */
  async releaseAfterLockDelay(hold: Hold): Promise<void> {
    const { clock, stopSignal, pendingWork } = this.service;
    pendingWork.begin();
    await hold.watchdog.stop();
    await pause(clock, hold.options.lockDelayMs, { background: true, signal: stopSignal });
    await this.release(hold);
    pendingWork.end();
  }

  /**
   * Has the server keep the key closed until a process adopts the lease, at most for `ms`. Releases the lease after a
   * failure. @throws LockLostError; LockBackendError
   */
  async keepForAdoption(hold: Hold, ms: number, endTurn: () => void): Promise<void> {
    const { key, watchdog } = hold;
    this.#beginRequest();
    try {
      await watchdog.stop();
      if (!(await watchdog.lease.passOn(ms))) throw new LockLostError(key, 'revoked');
      endTurn();
    } catch (error) {
      void this.release(hold, endTurn);
      throw isLockError(error) ? error : this.service.observers.notifyFailure(key, 'transfer', error);
    } finally {
      this.#endRequest();
    }
  }

  async #releaseAt(time: number, hold: Hold): Promise<void> {
    const { clock, stopSignal } = this.service;
    await pause(clock, time - clock.now(), { background: true, signal: stopSignal });
    if (!stopSignal.aborted) await this.release(hold);
  }

  #beginRequest(): void {
    this.service.pendingWork.begin();
    beginKeepAlive();
  }

  #endRequest(): void {
    this.service.pendingWork.end();
    endKeepAlive();
  }

  /** @param keepClosedMs time for which the key is kept closed. `0`: the key is released */
  #releaseOrKeepClosed(
    { key, watchdog: { lease } }: Hold,
    keepClosedMs: number,
    endTurn: () => void,
    endsTurnOnSend: boolean,
  ): Promise<void> {
    return new Promise((resolve) => {
      let isFinished = false;
      const finish = (error?: unknown): void => {
        if (isFinished) return;
        isFinished = true;
        timeout.cancel();
        if (error !== undefined) this.service.observers.notifyFailure(key, 'release', error);
        this.#endRequest();
        if (!endsTurnOnSend) endTurn();
        resolve();
      };
      const { serverTtlMs } = lease.times;
      const timeout = new WheelTimer(this.#wheel, () => finish(new Error(`no answer within ${serverTtlMs} ms`)));
      timeout.setAtOrAfter(this.service.clock.now() + serverTtlMs, serverTtlMs / 8);
      (keepClosedMs > 0 ? lease.keepClosedFor(keepClosedMs) : lease.release()).then(() => finish(), finish);
      if (endsTurnOnSend) endTurn();
    });
  }
}
