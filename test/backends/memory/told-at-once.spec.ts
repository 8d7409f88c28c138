import { LockService } from 'nestjs-distributed-lock/core';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { aborted, UNRENEWED_TTL_MS } from '../../conformance/contract.js';

it('memory: a holder is told at once whom another service of its process evicts', async () => {
  const backend = memory();
  await using holders = new LockService(backend);
  await using operators = new LockService(backend);
  const lock = await holders.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
  const next = operators.acquire('key', { waitMs: 10_000 });
  await operators.evict('key');
  await aborted(lock.signal);
  expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
  await (await next).release();
});

it('memory: a reading that throws at once neither ends the process nor the lock', async () => {
  let onReport: (key?: string) => void = () => undefined;
  let readings = 0;
  const store = Object.assign(new MemoryLeaseStore(), {
    watchLeases: (onChange: typeof onReport) => {
      onReport = onChange;
      return { needsEarlyRenewal: false, end: () => undefined };
    },
    isHeldBy: (): never => {
      readings += 1;
      throw new Error('of a store');
    },
  });
  await using service = new LockService(store);
  const lock = await service.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
  onReport('key');
  await new Promise((resolve) => setImmediate(resolve));
  expect(readings).toBe(1);
  expect(lock.isHeld).toBe(true);
});
