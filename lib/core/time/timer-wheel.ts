import { setTimeout } from 'node:timers';
import { detached } from './detached.js';
import { type Linked, LinkedQueue } from './linked-queue.js';
import type { Clock, Timer } from './timers.js';

/** The most callbacks of one turn of the event loop; more would keep everything else waiting. */
const MOST_IN_A_TURN = 250;

/** Between two turns: a server answers meanwhile, and requests do not pile up. With 100,000 locks they cost a third less. */
const PAUSE_MS = 1;

/** With more slots than these, one that empties is closed. With fewer it is kept: locks come and go within a slot's time. */
const MOST_EMPTY_SLOTS = 64;

const wheels = new WeakMap<Clock, TimerWheel>();

/** @internal The timers of one grid point, until its time has come. */
class Slot extends LinkedQueue<WheelTimer> {
  /** The clock's. */
  alarm: Timer | undefined;

  constructor(readonly time: number) {
    super();
  }
}

/**
 * Runs callbacks on a coarse grid, all of one grid point together in one turn of the event loop: a thousand locks that
 * are renewed in the same turn share a request, and have a timer together. In the background only.
 */
export class TimerWheel {
  readonly #slots = new Map<number, Slot>();

  constructor(private readonly clock: Clock) {}

  /** The one that all users of a clock share. */
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

  /** @internal Every TTL has points of its own: thousands of them would keep thousands of slots. */
  onEmpty(slot: Slot): void {
    if (this.#slots.size <= MOST_EMPTY_SLOTS || this.#slots.get(slot.time) !== slot) return;
    this.#slots.delete(slot.time);
    slot.alarm?.cancel();
  }

  #open(time: number): Slot {
    const slot = new Slot(time);
    this.#slots.set(time, slot);
    const run = (): void => {
      this.#slots.delete(time);
      runInTurns(slot);
    };
    slot.alarm = detached(() => this.clock.schedule(time - this.clock.now(), run, { background: true }));
    return slot;
  }
}

/** Goes on in the next turn where it stopped, and never comes to what was cancelled meanwhile. */
function runInTurns(slot: Slot): void {
  for (let count = 0; count < MOST_IN_A_TURN; count += 1) {
    const timer = slot.first;
    if (!timer) return;
    timer.run();
  }
  setTimeout(runInTurns, PAUSE_MS, slot);
}

/** A timer on the grid that can be set again and again. */
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

  /** Runs once, never later than `time`, and never earlier by more than the grid. */
  setBy(time: number, gridMs: number): void {
    this.#setAt(Math.floor(time / gridMs) * gridMs);
  }

  /** Runs once, never earlier than `time`, and never later by more than the grid. */
  setFrom(time: number, gridMs: number): void {
    const point = Math.ceil(time / gridMs) * gridMs;
    // Rounding may put it before `time`: who is then set again for what is over would run for ever.
    this.#setAt(point < time ? point + gridMs : point);
  }

  cancel(): void {
    const slot = this.queue;
    slot?.delete(this);
    if (slot && !slot.first) this.wheel.onEmpty(slot);
  }

  /** @internal Its time has come. */
  run(): void {
    this.cancel();
    this.callback();
  }

  #setAt(time: number): void {
    this.cancel();
    this.wheel.slotAt(time).push(this);
  }
}
