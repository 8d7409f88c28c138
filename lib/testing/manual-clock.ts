import type { Clock, Timer } from '../core/index.js';
import { setImmediate } from '../core/time/real-timers.js';

interface ScheduledCall {
  /** Time of the clock, in milliseconds, at which the call is due. */
  readonly dueAt: number;
  readonly callback: () => void;
}

/** Clock that stands still until a test moves it. The lock service and its backend must have the same clock. */
export class ManualClock implements Clock {
  #now = 0;
  readonly #scheduledCalls = new Set<ScheduledCall>();

  now(): number {
    return this.#now;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const call: ScheduledCall = { dueAt: this.#now + Math.max(0, delayMs), callback };
    if (delayMs !== Infinity) this.#scheduledCalls.add(call);
    return { cancel: () => void this.#scheduledCalls.delete(call) };
  }

  /** Moves the clock on. Runs each callback at the time at which it is due, after all promises have settled. */
  async advance(ms: number): Promise<void> {
    const endTime = this.#now + ms;
    await settlePromises();
    for (let call = this.#findFirstDueCall(endTime); call; call = this.#findFirstDueCall(endTime)) {
      this.#now = Math.max(this.#now, call.dueAt);
      this.#scheduledCalls.delete(call);
      call.callback();
      await settlePromises();
    }
    this.#now = Math.max(this.#now, endTime);
  }

  /** Moves the clock on without running callbacks, as after a blocked event loop or a stopped process. */
  stall(ms: number): void {
    this.#now += ms;
  }

  #findFirstDueCall(time: number): ScheduledCall | undefined {
    let firstCall: ScheduledCall | undefined;
    for (const call of this.#scheduledCalls) {
      if (call.dueAt <= time && (!firstCall || call.dueAt < firstCall.dueAt)) firstCall = call;
    }
    return firstCall;
  }
}

function settlePromises(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
