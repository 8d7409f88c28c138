import { LockBackendError, resolveOptions } from 'nestjs-distributed-lock/core';
import { WaitGroup } from '../../lib/core/kit/wait-group.js';
import { Deadline } from '../../lib/core/time/deadline.js';
import { Turns } from '../../lib/core/turns/turns.js';
import { handled } from '../conformance/contract.js';
import { ServiceWorld } from './service-world.js';

it('a lease that is passed on is under way until the next caller has begun with it, so that a close waits', async () => {
  const underWay = new WaitGroup();
  const turns = new Turns<string>(underWay);
  expect(turns.tryTakeTurn('key', 1)).toBe(true);
  expect(turns.tryTakeTurn('key', 1)).toBe(false);
  const next = turns.waitForTurn('key', resolveOptions(undefined), Deadline.after(60_000));
  turns.passTurn('key', 'the lease');
  let isIdle = false;
  const idle = underWay.waitUntilIdle().then(() => (isIdle = true));
  await expect(next).resolves.toBe('the lease');
  expect(isIdle).toBe(false);
  underWay.end();
  await idle;
});

it('the end of a caller that was cancelled says nothing of the backend, whatever its reason', async () => {
  const { backend, locks, clock } = new ServiceWorld();
  const free = await backend.occupy('k');
  const controller = new AbortController();
  const cancelled = handled(locks.acquire('k', { signal: controller.signal }));
  const waiting = locks.acquire('k', { ttlMs: 20_000 });
  await clock.advance(1);
  const reason = new LockBackendError('other', { backend: 'test', operation: 'acquire', cause: new Error('down') });
  controller.abort(reason);
  await expect(cancelled).rejects.toBe(reason);
  await free();
  await clock.advance(1_000);
  expect(await waiting).toMatchObject({ isHeld: true });
  await locks.close();
});
