import { expect, it } from '@jest/globals';
import { LockService } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
import { aborted } from '../../conformance/contract.js';

/** A third of it, after which a lease is renewed, is longer than this test may take. */
const TTL_MS = 600_000;

it('memory: a holder is told at once whom another service of its process evicts', async () => {
  const backend = memory();
  await using holders = new LockService(backend);
  await using operators = new LockService(backend);
  const lock = await holders.acquire('key', { ttlMs: TTL_MS });
  const next = operators.acquire('key', { waitMs: 10_000 });
  await operators.evict('key');
  await aborted(lock.signal);
  expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
  await (await next).release();
});
