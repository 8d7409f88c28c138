/** One process of a contestant: what the scenarios ask of it. */
import { serve } from '../test/support/serve.js';
import type { Connection } from '../test/support/harness-connection.js';
import { liveBytes } from '../test/support/live-bytes.js';
import type { Locker, Terms } from './contestants/contestant.js';
import { contend } from './contend.js';
import { now } from './monotonic-clock.js';
import { type BackendName, competitionOf } from './competitions.js';
import { ProcessorProfile, type Spent } from './processor-profile.js';

export interface Assignment {
  readonly backend: BackendName;
  readonly contestant: string;
  readonly connection: Connection;
  readonly terms: Terms;
  /** Takes no lock yet. */
  readonly cold: boolean;
}

let locker: Locker | undefined;
let profile: ProcessorProfile | undefined;
const holds: (() => Promise<void>)[] = [];

const worker = {
  connect: async ({ backend, contestant, connection, terms, cold }: Assignment): Promise<void> => {
    const { floor, others } = competitionOf(backend);
    const chosen = [floor, ...others].find(({ name }) => name === contestant);
    if (!chosen) throw new Error(`${contestant} is no contestant on ${backend}`);
    locker = await chosen.connect(connection, terms);
    // The first lock pays for what is only made once.
    if (!cold) await locker.withLock(`warm-up-${process.pid}`, () => undefined);
  },
  contend: (race: Parameters<typeof contend>[1]) => contend(connected(), race),
  /** Resolves to one of the keys when all are held. Nobody else has them: who is killed leaves its locks behind for a while. */
  hold: async (count: number): Promise<string> => {
    const keys = Array.from({ length: count }, (_, place) => `held-${process.pid}-${place}`);
    // No more at once than a connection takes within a command's time-out.
    for (let from = 0; from < count; from += 500) {
      holds.push(...(await Promise.all(keys.slice(from, from + 500).map((key) => hold(connected(), key)))));
    }
    return keys[0] ?? '';
  },
  /** Resolves to when the first was about to be let go. */
  letGo: async (): Promise<number> => {
    const at = now();
    await Promise.all(holds.splice(0).map((end) => end()));
    return at;
  },
  /** When each of the callers got in, all of whom ask for the key now. */
  waitTogether: async ({ key, callers }: { readonly key: string; readonly callers: number }): Promise<Float64Array> => {
    const entered: number[] = [];
    const caller = (): Promise<void> => connected().withLock(key, () => void entered.push(now()));
    await Promise.allSettled(Array.from({ length: callers }, caller));
    return Float64Array.from(entered);
  },
  liveBytes: () => liveBytes(),
  /** Milliseconds of processor time so far. */
  cpuMs: (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  startProfile: async (): Promise<void> => void (profile = await ProcessorProfile.start()),
  stopProfile: async (): Promise<Spent | undefined> => profile?.stop(),
  close: async (): Promise<void> => connected().close(),
};

export type Worker = typeof worker;

serve(worker);

function connected(): Locker {
  if (!locker) throw new Error('connect() comes first');
  return locker;
}

/** Resolves, once it is held, to what gives it back. */
function hold(on: Locker, key: string): Promise<() => Promise<void>> {
  if (on.acquire) return on.acquire(key);
  return new Promise((resolve, reject) => {
    let end: () => void = () => undefined;
    const over = new Promise<void>((settle) => (end = settle));
    const done = on.withLock(key, () => {
      resolve(() => {
        end();
        return done;
      });
      return over;
    });
    done.catch(reject);
  });
}
