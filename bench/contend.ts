import { setTimeout as sleep } from 'node:timers/promises';
import type { Locker } from './contestants/contestant.js';
import { now } from './monotonic-clock.js';
import { measureSpending, type Spending } from './spending.js';

export interface Race {
  /** Key of all callers, or the beginning of each caller's own key. */
  readonly name: string;
  readonly keys: 'one' | 'each';
  readonly callers: number;
  /**
   * When callers repeat: each after its own release (`ceaseless`), or all together after the last release (`bursts`).
   */
  readonly rhythm: 'ceaseless' | 'bursts';
  /** Milliseconds that each caller holds the lock. At 0 the caller releases without a timer. */
  readonly holdMs: number;
  /** Number of callers that take the whole lock, where the others take a part of it. @default 0 */
  readonly writers?: number;
  /** Time at which all processes begin. */
  readonly startAt: number;
  /** Time from which waits and acquisitions count. Earlier the first caller has no competitors. */
  readonly countsFrom: number;
  /** Time after which no caller asks again. Callers that already wait are still served. */
  readonly until: number;
}

/** Record of a race in one process, and its costs. All times are of the monotonic clock. */
export interface Contest extends Spending {
  /** Number of acquisitions within `lastedMs`. */
  readonly acquisitions: number;
  /**
   * Milliseconds from `countsFrom` to `until`, or to the end of the last burst. Half a burst would count only its fast
   * callers.
   */
  readonly lastedMs: number;
  /** Number of all acquisitions, including those before `countsFrom` and after `until`. */
  readonly served: number;
  readonly failures: number;
  readonly failure?: string;
  /** Number of callers that never acquired the lock. */
  readonly starved: number;
  /** Milliseconds that each call waited, including calls that were never granted. */
  readonly waitsMs: Float64Array;
  /** Milliseconds of the longest wait of a writer. */
  readonly longestWriterMs: number;
  /** Times of acquisition and release, and the part, of all visits. Empty where each caller has its own key. */
  readonly visits: Float64Array;
  /** Number of calls that were granted after a call that had asked later. */
  readonly overtaken: number;
}

/** Milliseconds after the end of a race in which waiting callers may still acquire the lock or give up. */
const GRACE_MS = 15_000;

export async function contend(locker: Locker, race: Race): Promise<Contest> {
  const { keys, name, callers, rhythm, startAt, until, writers = 0 } = race;
  await sleep(Math.max(0, startAt - now()));
  const recorder = new ContestRecorder(race, locker.part ?? 1);
  const allCallers = Array.from({ length: callers }, (_, place) => {
    const key = keys === 'one' ? name : `${name}-${process.pid}-${place}`;
    return { place, key, isWriter: place < writers };
  });
  const repeat = async (caller: Caller): Promise<void> => {
    do await takeLock(locker, caller, recorder);
    while (now() < until);
  };
  const repeatBursts = async (): Promise<void> => {
    do await Promise.all(allCallers.map((caller) => takeLock(locker, caller, recorder)));
    while (now() < until);
  };
  const stopMeasuring = measureSpending();
  const allCallersDone = rhythm === 'bursts' ? repeatBursts() : Promise.all(allCallers.map(repeat));
  await Promise.race([allCallersDone, new Promise((resolve) => setTimeout(resolve, until - now() + GRACE_MS))]);
  return { ...recorder.toContest(), ...stopMeasuring() };
}

interface Caller {
  readonly place: number;
  readonly key: string;
  readonly isWriter: boolean;
}

async function takeLock(locker: Locker, { place, key, isWriter }: Caller, recorder: ContestRecorder): Promise<void> {
  const { holdMs } = recorder.race;
  recorder.recordRequest(place);
  try {
    const { withLock, withWholeLock = withLock } = locker;
    await (isWriter ? withWholeLock : withLock)(key, () => {
      const enteredAt = recorder.recordEntry(place);
      if (holdMs === 0) return recorder.recordExit(place, enteredAt);
      return new Promise<void>((resolve) => {
        setTimeout(() => {
          recorder.recordExit(place, enteredAt);
          resolve();
        }, holdMs);
      });
    });
  } catch (error) {
    recorder.recordFailure(place, error);
  }
}

/**
 * Records a race. A visit takes less than a microsecond and hardly allocates, since these costs count as the
 * contestant's.
 */
class ContestRecorder {
  readonly #waits: number[] = [];
  readonly #visits: number[] = [];
  /** Time at which the caller of each place asked for the lock; `NaN` while it does not wait. */
  readonly #requestedAt: Float64Array;
  readonly #servedPlaces = new Set<number>();
  readonly #startedAt = now();
  #acquisitions = 0;
  #served = 0;
  #overtaken = 0;
  #latestArrival = 0;
  #longestWriterMs = 0;
  #failures = 0;
  #failure: string | undefined;

  /** @param part part of the lock that a caller takes who is no writer */
  constructor(
    readonly race: Race,
    private readonly part: number,
  ) {
    this.#requestedAt = new Float64Array(race.callers).fill(NaN);
  }

  recordRequest(place: number): void {
    this.#requestedAt[place] = now();
  }

  recordEntry(place: number): number {
    const enteredAt = now();
    const requestedAt = this.#requestedAt[place] ?? NaN;
    this.#requestedAt[place] = NaN;
    if (enteredAt >= this.race.countsFrom) this.#recordWait(place, enteredAt - requestedAt);
    if (requestedAt < this.#latestArrival) this.#overtaken += 1;
    else this.#latestArrival = requestedAt;
    this.#servedPlaces.add(place);
    this.#served += 1;
    return enteredAt;
  }

  #recordWait(place: number, waitedMs: number): void {
    this.#waits.push(waitedMs);
    if (this.#isWriter(place)) this.#longestWriterMs = Math.max(this.#longestWriterMs, waitedMs);
  }

  recordExit(place: number, enteredAt: number): void {
    const leftAt = now();
    if (this.race.keys === 'one') this.#visits.push(enteredAt, leftAt, this.#isWriter(place) ? 1 : this.part);
    const { countsFrom, until, rhythm } = this.race;
    if (leftAt >= countsFrom && (leftAt < until || rhythm === 'bursts')) this.#acquisitions += 1;
  }

  #isWriter(place: number): boolean {
    return place < (this.race.writers ?? 0);
  }

  recordFailure(place: number, error: unknown): void {
    this.#requestedAt[place] = NaN;
    this.#failures += 1;
    this.#failure ??= String(error);
  }

  toContest(): Omit<Contest, keyof Spending> {
    const { rhythm, countsFrom, until } = this.race;
    const end = now();
    this.#requestedAt.forEach((requestedAt, place) => {
      if (!Number.isNaN(requestedAt)) this.#recordWait(place, end - requestedAt);
    });
    return {
      lastedMs: (rhythm === 'bursts' ? end : until) - Math.max(this.#startedAt, countsFrom),
      acquisitions: this.#acquisitions,
      served: this.#served,
      failures: this.#failures,
      ...(this.#failure === undefined ? {} : { failure: this.#failure }),
      starved: this.race.callers - this.#servedPlaces.size,
      waitsMs: Float64Array.from(this.#waits),
      longestWriterMs: this.#longestWriterMs,
      visits: Float64Array.from(this.#visits),
      overtaken: this.#overtaken,
    };
  }
}
