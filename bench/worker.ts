/** Process of a contestant. Serves the calls of the scenarios. */
import { serve } from '../test/support/serve.js';
import type { Connection } from '../test/support/harness-connection.js';
import { liveBytes } from '../test/support/live-bytes.js';
import type { Locker, Terms } from './contestants/contestant.js';
import { contend } from './contend.js';
import { now } from './monotonic-clock.js';
import { type BackendName, competitionOf } from './competitions.js';
import { ProcessorProfile, type TimeByOwner } from './processor-profile.js';

export interface Assignment {
  readonly backend: BackendName;
  readonly contestant: string;
  readonly connection: Connection;
  readonly terms: Terms;
  /** Whether `connect` is to take no lock yet. */
  readonly skipsWarmUp: boolean;
}

let connectedLocker: Locker | undefined;
let profile: ProcessorProfile | undefined;
const releases: (() => Promise<void>)[] = [];

const worker = {
  connect: async ({ backend, contestant, connection, terms, skipsWarmUp }: Assignment): Promise<void> => {
    const { floor, others } = competitionOf(backend);
    const found = [floor, ...others].find(({ name }) => name === contestant);
    if (!found) throw new Error(`${contestant} is no contestant on ${backend}`);
    const locker = await found.connect(connection, terms);
    connectedLocker = locker;
    // The first lock is slower: it creates objects that all later ones share.
    if (!skipsWarmUp) await locker.withLock(`warm-up-${process.pid}`, () => undefined);
  },
  contend: (race: Parameters<typeof contend>[1]) => contend(requireLocker(), race),
  /**
   * Acquires `count` locks, and resolves to one of their keys. The keys belong to this process: killed ones leave
   * locks behind.
   */
  hold: async (count: number): Promise<string> => {
    const keys = Array.from({ length: count }, (_, place) => `held-${process.pid}-${place}`);
    // A connection answers this many commands within their time-out.
    for (let from = 0; from < count; from += 500) {
      releases.push(
        ...(await Promise.all(keys.slice(from, from + 500).map((key) => acquireLock(requireLocker(), key)))),
      );
    }
    return keys[0] ?? '';
  },
  /** Acquires all parts of one lock, and resolves to its key. */
  holdWhole: async (): Promise<string> => {
    const [locker, key] = [requireLocker(), `held-${process.pid}`];
    const parts = Math.round(1 / (locker.part ?? 1));
    releases.push(...(await Promise.all(Array.from({ length: parts }, () => acquireLock(locker, key)))));
    return key;
  },
  /** Releases all locks. Resolves to the time right before the first release. */
  releaseAll: async (): Promise<number> => {
    const at = now();
    await Promise.all(releases.splice(0).map((release) => release()));
    return at;
  },
  /** Starts callers that ask for the key at once. Resolves to the times at which they acquired it. */
  acquireTogether: async ({
    key,
    callers,
  }: {
    readonly key: string;
    readonly callers: number;
  }): Promise<Float64Array> => {
    const entered: number[] = [];
    const caller = (): Promise<void> => requireLocker().withLock(key, () => void entered.push(now()));
    await Promise.allSettled(Array.from({ length: callers }, caller));
    return Float64Array.from(entered);
  },
  measureLiveBytes: () => liveBytes(),
  /** Returns the milliseconds of processor time since the start of the process. */
  measureCpuMs: (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  startProfile: async (): Promise<void> => void (profile = await ProcessorProfile.start()),
  stopProfile: async (): Promise<TimeByOwner | undefined> => profile?.stop(),
  close: async (): Promise<void> => requireLocker().close(),
};

export type Worker = typeof worker;

serve(worker);

function requireLocker(): Locker {
  if (!connectedLocker) throw new Error('connect() comes first');
  return connectedLocker;
}

/** Acquires a lock, and resolves to its release. */
function acquireLock(locker: Locker, key: string): Promise<() => Promise<void>> {
  if (locker.acquire) return locker.acquire(key);
  return new Promise((resolve, reject) => {
    let end: () => void = () => undefined;
    const over = new Promise<void>((settle) => (end = settle));
    const done = locker.withLock(key, () => {
      resolve(() => {
        end();
        return done;
      });
      return over;
    });
    done.catch(reject);
  });
}
