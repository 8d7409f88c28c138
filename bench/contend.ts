import { setTimeout as sleep } from 'node:timers/promises';
import type { Locker } from './contestants/contestant.js';
import { now } from './monotonic-clock.js';
import { type Spending, spending } from './spending.js';

export interface Race {
  /** The key that all callers want, or how the key of each begins. */
  readonly name: string;
  readonly keys: 'one' | 'each';
  readonly callers: number;
  /** Each takes its lock again as soon as it has given it back, or all of them once, and again when the last one is out. */
  readonly rhythm: 'ceaseless' | 'bursts';
  /** How long each stays inside; at 0 there is nothing to wait for. */
  readonly insideMs: number;
  /** All processes begin then. */
  readonly startAt: number;
  /** Waits and acquisitions count from here on. Before, whoever came first has the key for itself. */
  readonly countsFrom: number;
  /** Nobody asks again afterwards; callers who still wait are awaited. */
  readonly until: number;
}

/** One process's view of a race, and its costs. Times are those of the monotonic clock. */
export interface Contest extends Spending {
  /** Those within `lastedMs`. */
  readonly acquisitions: number;
  /** From `countsFrom` to the end of the time, or of the last burst: a burst that is cut short lacks its slow end. */
  readonly lastedMs: number;
  /** All, also after the time. */
  readonly served: number;
  readonly failures: number;
  readonly failure?: string;
  /** Callers who never got in. */
  readonly starved: number;
  /** How long each call waited to get in, the ones that were never answered too. */
  readonly waitsMs: Float64Array;
  /** One entry and one exit after the other, also after the time; empty with a key for each. */
  readonly visits: Float64Array;
  /** Calls that got in after one that came later. */
  readonly overtaken: number;
}

/** Past the end of a race, those who still wait have this long to get in or to give up. */
const GRACE_MS = 15_000;

export async function contend(locker: Locker, race: Race): Promise<Contest> {
  const { keys, name, callers, rhythm, startAt, until } = race;
  await sleep(Math.max(0, startAt - now()));
  const record = new ContestRecord(race);
  const everybody = Array.from({ length: callers }, (_, place) => {
    const key = keys === 'one' ? name : `${name}-${process.pid}-${place}`;
    return { place, key };
  });
  const ceaseless = async (caller: Caller): Promise<void> => {
    do await visit(locker, caller, record);
    while (now() < until);
  };
  const bursts = async (): Promise<void> => {
    do await Promise.all(everybody.map((caller) => visit(locker, caller, record)));
    while (now() < until);
  };
  const spent = spending();
  const all = rhythm === 'bursts' ? bursts() : Promise.all(everybody.map(ceaseless));
  await Promise.race([all, new Promise((resolve) => setTimeout(resolve, until - now() + GRACE_MS))]);
  return { ...record.contest(), ...spent() };
}

interface Caller {
  readonly place: number;
  readonly key: string;
}

async function visit(locker: Locker, { place, key }: Caller, record: ContestRecord): Promise<void> {
  const { insideMs } = record.race;
  record.ask(place);
  try {
    await locker.withLock(key, () => {
      const entered = record.enter(place);
      if (insideMs === 0) return record.leave(entered);
      return new Promise<void>((resolve) => {
        setTimeout(() => {
          record.leave(entered);
          resolve();
        }, insideMs);
      });
    });
  } catch (error) {
    record.fail(place, error);
  }
}

/** Takes down what happens, at less than a microsecond a visit, and hardly allocates: its bytes count as the contestant's. */
class ContestRecord {
  readonly #waits: number[] = [];
  readonly #visits: number[] = [];
  /** By place, when its caller asked; NaN while it does not wait. */
  readonly #asked: Float64Array;
  readonly #seen = new Set<number>();
  readonly #began = now();
  #acquisitions = 0;
  #served = 0;
  #overtaken = 0;
  #latestArrival = 0;
  #failures = 0;
  #failure: string | undefined;

  constructor(readonly race: Race) {
    this.#asked = new Float64Array(race.callers).fill(NaN);
  }

  ask(place: number): void {
    this.#asked[place] = now();
  }

  enter(place: number): number {
    const entered = now();
    const asked = this.#asked[place] ?? NaN;
    this.#asked[place] = NaN;
    if (entered >= this.race.countsFrom) this.#waits.push(entered - asked);
    if (asked < this.#latestArrival) this.#overtaken += 1;
    else this.#latestArrival = asked;
    this.#seen.add(place);
    this.#served += 1;
    return entered;
  }

  leave(entered: number): void {
    const left = now();
    if (this.race.keys === 'one') this.#visits.push(entered, left);
    const { countsFrom, until, rhythm } = this.race;
    if (left >= countsFrom && (left < until || rhythm === 'bursts')) this.#acquisitions += 1;
  }

  fail(place: number, error: unknown): void {
    this.#asked[place] = NaN;
    this.#failures += 1;
    this.#failure ??= String(error);
  }

  contest(): Omit<Contest, keyof Spending> {
    const { rhythm, countsFrom, until } = this.race;
    const end = now();
    const stillWaiting = Array.from(this.#asked).filter((asked) => !Number.isNaN(asked));
    return {
      lastedMs: (rhythm === 'bursts' ? end : until) - Math.max(this.#began, countsFrom),
      acquisitions: this.#acquisitions,
      served: this.#served,
      failures: this.#failures,
      ...(this.#failure === undefined ? {} : { failure: this.#failure }),
      starved: this.race.callers - this.#seen.size,
      waitsMs: Float64Array.from([...this.#waits, ...stillWaiting.map((asked) => end - asked)]),
      visits: Float64Array.from(this.#visits),
      overtaken: this.#overtaken,
    };
  }
}
