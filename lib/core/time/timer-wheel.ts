import { setTimeout } from 'node:timers';
import { runDetached } from './detached.js';
import { type Linked, LinkedQueue } from './linked-queue.js';
import type { Clock, Timer } from './timers.js';

/** Maximum number of callbacks in one iteration of the event loop; more would keep everything else waiting. */
const MAX_PER_ITERATION = 250;

/** Pause between two such iterations, in which a server answers. With 100,000 locks requests cost a third less by it. */
const PAUSE_MS = 1;

/** Number of slots up to which an empty one is kept: locks come and go within a slot's time. */
const MAX_KEPT_SLOTS = 64;

const wheels = new WeakMap<Clock, TimerWheel>();

/** @internal Timers of one grid point, until its time has come. */
class Slot extends LinkedQueue<WheelTimer> {
  /** Timer of the clock for the grid point. */
  alarm: Timer | undefined;

  constructor(readonly time: number) {
    super();
  }
}

/**
 * Runs callbacks on a coarse grid of times. All callbacks of one grid point share a timer and run together, so that a
 * thousand renewals share a request. They do not keep the process alive.
 */
export class TimerWheel {
  readonly #slots = new Map<number, Slot>();

  constructor(private readonly clock: Clock) {}

  /** Returns the wheel that all users of a clock share. */
  static of(clock: Clock): TimerWheel {
    const known = wheels.get(clock);
    if (known) return known;
    const wheel = new TimerWheel(clock);
    wheels.set(clock, wheel);
    return wheel;
  }

  /** @internal */
  slotAt(time: number): Slot {
    return this.#slots.get(time) ?? this.#open(time);
  }

  /** @internal Closes an empty slot where there are many: every TTL has grid points of its own. */
  onEmpty(slot: Slot): void {
    if (this.#slots.size <= MAX_KEPT_SLOTS || this.#slots.get(slot.time) !== slot) return;
    this.#slots.delete(slot.time);
    slot.alarm?.cancel();
  }

  #open(time: number): Slot {
    const slot = new Slot(time);
    this.#slots.set(time, slot);
    const run = (): void => {
      this.#slots.delete(time);
      runInIterations(slot);
    };
    slot.alarm = runDetached(() => this.clock.schedule(time - this.clock.now(), run, { background: true }));
    return slot;
  }
}

/** Runs the timers of a slot, a part of them in each iteration of the event loop. */
function runInIterations(slot: Slot): void {
  for (let count = 0; count < MAX_PER_ITERATION; count += 1) {
    const timer = slot.first;
    if (!timer) return;
    timer.run();
  }
  setTimeout(runInIterations, PAUSE_MS, slot);
}

/** Timer on the grid that can be set again and again. */
export class WheelTimer implements Timer, Linked<WheelTimer> {
  /** @internal */
  before: WheelTimer | undefined;
  /** @internal */
  after: WheelTimer | undefined;
  /** @internal */
  queue: Slot | undefined;

  constructor(
    private readonly wheel: TimerWheel,
    private readonly callback: () => void,
  ) {}

  /** Sets the timer to the last grid point that is not later than `time`. */
  setBy(time: number, gridMs: number): void {
    this.#setAt(Math.floor(time / gridMs) * gridMs);
  }

  /** Sets the timer to the first grid point that is not earlier than `time`. */
  setFrom(time: number, gridMs: number): void {
    const point = Math.ceil(time / gridMs) * gridMs;
    // Rounding may put the point before `time`: a timer that is then set again for the past would run for ever.
    this.#setAt(point < time ? point + gridMs : point);
  }

  cancel(): void {
    const slot = this.queue;
    slot?.delete(this);
    if (slot && !slot.first) this.wheel.onEmpty(slot);
  }

  /** @internal Called by the wheel at the time. */
  run(): void {
    this.cancel();
    this.callback();
  }

  #setAt(time: number): void {
    this.cancel();
    this.wheel.slotAt(time).push(this);
  }
}
