import { expect, it } from '@jest/globals';
import { resolveOptions } from 'nestjs-distributed-lock/core';
import { WaitGroup } from '../../lib/core/kit/wait-group.js';
import { Deadline } from '../../lib/core/time/deadline.js';
import { Turns } from '../../lib/core/turns/turns.js';

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
