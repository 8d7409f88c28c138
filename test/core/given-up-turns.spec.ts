import { type LeaseAttempt, type LeaseStore, LockService } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';

/** A turn may pass to a caller who gives up before he can take it: so many turns of promises lie in between, or fewer. */
const MOST_TICKS = 8;

describe('a caller who gives up as the turn comes to him', () => {
  let store: LineStore;
  let events: string[];
  let locks: LockService;

  beforeEach(() => {
    store = new LineStore();
    events = [];
    const note = (name: string) => (): void => void events.push(name);
    locks = new LockService(store, { observers: [{ acquired: note('acquired'), released: note('released') }] });
  });

  const ticks = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) await Promise.resolve();
  };

  it('leaves no entry in the line of the server', async () => {
    store.isTaken = true;
    for (let count = 0; count <= MOST_TICKS; count += 1) {
      const controllers = [new AbortController(), new AbortController()];
      const waits = controllers.map(({ signal }) => expect(locks.acquire('k', { signal })).rejects.toBe('enough'));
      await eventually(() => expect(store.line.size).toBe(1));
      controllers[0]?.abort('enough');
      await ticks(count);
      controllers[1]?.abort('enough');
      await Promise.all(waits);
      await eventually(() => expect({ count, line: [...store.line] }).toEqual({ count, line: [] }));
    }
    await locks.close();
  });

  it('lets those behind him have the key', async () => {
    for (let count = 0; count <= MOST_TICKS; count += 1) {
      store.isTaken = true;
      const controllers = [new AbortController(), new AbortController()];
      const waits = controllers.map(({ signal }) => expect(locks.acquire('k', { signal })).rejects.toBe('enough'));
      const last = locks.acquire('k');
      await eventually(() => expect(store.line.size).toBe(1));
      controllers[0]?.abort('enough');
      await ticks(count);
      controllers[1]?.abort('enough');
      await Promise.all(waits);
      await eventually(() => expect(store.line.size).toBe(1));
      store.isTaken = false;
      store.wake();
      await (await last).release();
      expect([...store.line]).toEqual([]);
    }
    await locks.close();
  });

  it('is told who has the key, also when his place in line goes to the next', async () => {
    store.isTaken = true;
    const first = locks.acquire('k', { waitMs: 200 });
    await eventually(() => expect(store.line.size).toBe(1));
    const next = locks.acquire('k', { waitMs: 20_000 });
    await expect(first).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', holder: { host: 'elsewhere', pid: 7 } });
    expect(store.line.size).toBe(1);
    store.isTaken = false;
    store.wake();
    await (await next).release();
    await locks.close();
  });

  it('is no holder to observers', async () => {
    const first = await locks.acquire('k');
    const controller = new AbortController();
    const second = expect(locks.acquire('k', { signal: controller.signal })).rejects.toBe('enough');
    void first.release();
    controller.abort('enough');
    await second;
    await locks.close();
    expect(events).toEqual(['acquired', 'released']);
  });
});

/** Has a line in which who watches stands until he is released. */
class LineStore implements LeaseStore {
  readonly name = 'line';
  readonly guarantee = 'best-effort';
  readonly traits = { endsWith: 'session' } as const;
  readonly line = new Set<string>();
  isTaken = false;
  wake = (): void => undefined;
  readonly #held = new Set<string>();
  #tokens = 0n;

  async tryAcquire(_key: string, owner: string): Promise<LeaseAttempt> {
    await Promise.resolve();
    this.line.add(owner);
    if (this.isTaken) return { acquired: false, retryAfterMs: null, holder: { host: 'elsewhere', pid: 7 } };
    this.#held.add(owner);
    this.#tokens += 1n;
    return { acquired: true, fencingToken: this.#tokens };
  }

  async renew(_key: string, owner: string): Promise<boolean> {
    await Promise.resolve();
    return this.#held.has(owner);
  }

  async release(_key: string, owner: string): Promise<boolean> {
    await new Promise((resolve) => void setImmediate(resolve));
    this.line.delete(owner);
    return this.#held.delete(owner);
  }

  watch(_key: string, _owner: string, wake: () => void): () => void {
    this.wake = wake;
    return () => undefined;
  }

  async close(): Promise<void> {}
}
