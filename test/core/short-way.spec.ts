import { LockService } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { BackendWorld } from './backend-world.js';
import { storeLike } from './store-like.js';

/** How many questions of a process are under way at a time. */
const ASKED_AT_ONCE = 5_000;

it('a key that is free leaves no watch behind', async () => {
  const store = new MemoryLeaseStore();
  let watching = 0;
  const watch = (key: string, owner: string, wake: () => void): (() => void) => {
    watching += 1;
    const unwatch = store.watch(key, owner, wake);
    return () => {
      watching -= 1;
      unwatch();
    };
  };
  await using locks = new LockService(storeLike(store, { name: 'watched', watch }));
  const lock = await locks.acquire('key');
  expect(watching).toBe(0);
  await lock.release();
});

it('a release that is never answered is waited for as long as its lease would last', async () => {
  const clock = new ManualClock();
  const release = (): Promise<boolean> => new Promise(() => undefined);
  const failures: string[] = [];
  const observers = [{ backendFailed: ({ error }: { error: unknown }) => void failures.push(reasonOf(error)) }];
  const store = storeLike(new MemoryLeaseStore(clock), { name: 'silent', release });
  const locks = new LockService(store, { clock, observers });
  const lock = await locks.acquire('key', { ttlMs: 800 });
  const released = lock.release();
  await clock.advance(700);
  expect(failures).toEqual([]);
  await clock.advance(300);
  await released;
  expect(failures).toEqual(['Error: no answer within 800 ms']);
});

function reasonOf(error: unknown): string {
  return error instanceof Error ? String(error.cause) : '';
}

it('those who only try wait behind very many others, as long as answers come', async () => {
  const { clock, store, backend, request } = new BackendWorld();
  const answers: (() => void)[] = [];
  store.carry = async (call, operation) => {
    if (operation === 'acquire') await new Promise<void>((resolve) => answers.push(resolve));
    return call();
  };
  const tries = Array.from({ length: ASKED_AT_ONCE + 10 }, (_, i) =>
    backend.acquire(`k${i}`, request(0, { ttlMs: 60_000 })),
  );
  const results = Promise.allSettled(tries);
  // Answers come slowly, and never later than the patience of 500 ms after the one before.
  for (let i = 0; i < 10; i += 1) {
    await clock.advance(300);
    answers.shift()?.();
  }
  store.carry = (call) => call();
  await clock.advance(0);
  for (const answer of answers) answer();
  expect((await results).filter(({ status }) => status === 'rejected')).toEqual([]);
  expect(store.asked.filter((operation) => operation === 'acquire')).toHaveLength(ASKED_AT_ONCE + 10);
});
