import type * as Core from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';

/** The core under test: ours, or a mutant of it. */
type CoreUnderTest = Pick<typeof Core, 'LockBackend' | 'LockService'>;

const SHARED = { mode: 'shared' } as const;
const READ_MS = 30;
/** The readers of a process join one lease for so long. */
const TURN_MS = 100;

/** What is wrong with what the readers of one process, who join one lease, meet. */
export async function wrongAmongReaders(core: CoreUnderTest): Promise<string[]> {
  const wrongs = [shutsWriterOut, isNotTold, leavesEarly].map(async (check) => {
    const world = new ReadersWorld(core);
    const wrong = await check(world);
    await world.close();
    return wrong;
  });
  return (await Promise.all(wrongs)).filter((wrong) => wrong !== undefined);
}

class ReadersWorld {
  readonly clock = new ManualClock();
  readonly store = new MemoryLeaseStore(this.clock);
  readonly readers: Core.LockService;
  readonly other: Core.LockService;

  constructor({ LockBackend, LockService }: CoreUnderTest) {
    const process = (): Core.LockService => new LockService(new LockBackend(this.store), { clock: this.clock });
    [this.readers, this.other] = [process(), process()];
  }

  async read(ms: number): Promise<void> {
    const lock = await this.readers.acquire('k', SHARED);
    await this.sleep(ms);
    await lock.release();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.schedule(ms, resolve));
  }

  async close(): Promise<void> {
    const closed = Promise.all([this.readers.close(), this.other.close()]);
    await this.clock.advance(60_000);
    await closed;
  }
}

/** A reader comes before the last one leaves, again and again. */
async function shutsWriterOut(world: ReadersWorld): Promise<string | undefined> {
  let end: number | undefined;
  for (let at = 0; at < 10 * TURN_MS; at += READ_MS / 3) {
    world.clock.schedule(at, () => void world.read(READ_MS));
  }
  world.clock.schedule(1, () => {
    void world.other.acquire('k').then((lock) => {
      end = world.clock.now();
      return lock.release();
    });
  });
  await world.clock.advance(20 * TURN_MS);
  return end !== undefined && end <= TURN_MS + 2 * READ_MS ? undefined : `the writer is in after ${end} ms`;
}

async function isNotTold(world: ReadersWorld): Promise<string | undefined> {
  const locks = await Promise.all([1, 2, 3].map(() => world.readers.acquire('k', SHARED)));
  const signals = locks.map(({ signal }) => signal);
  world.store.revoke('k');
  await world.clock.advance(60_000);
  const told = signals.filter(({ aborted }) => aborted).length;
  return told === signals.length ? undefined : `${told} of ${signals.length} readers hear of the loss`;
}

async function leavesEarly(world: ReadersWorld): Promise<string | undefined> {
  const [first, second] = await Promise.all([1, 2].map(() => world.readers.acquire('k', SHARED)));
  await first?.release();
  const writer = await world.other.tryAcquire('k');
  await writer?.release();
  await second?.release();
  if (writer) return 'the key is free while a reader is inside';
  return world.store.held().length > 0 ? 'the key is kept after the last reader' : undefined;
}
