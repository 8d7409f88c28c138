import { expect, it } from '@jest/globals';
import { LockService } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
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
