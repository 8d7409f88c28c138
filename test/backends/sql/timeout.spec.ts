import { type Clock, Deadline } from 'nestjs-distributed-lock/core';
import { settleByDeadline, TimeoutError } from '../../../lib/backends/sql/connections/timeout.js';

it.each([
  ['its delay', 5_000, 5_000],
  ['ten seconds, if its process was suspended for an hour', 3_600_000, 10_000],
])('an answer whose timer is late has %s as extra time', async (_, lateMs, extraMs) => {
  let now = 0;
  const scheduled: { readonly delayMs: number; readonly callback: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    schedule: (delayMs, callback) => {
      scheduled.push({ delayMs, callback });
      return { cancel: () => undefined };
    },
  };
  const answer = settleByDeadline(Deadline.after(100, clock), 'no answer', new Promise(() => undefined));
  now = 100 + lateMs;
  scheduled[0]?.callback();
  scheduled[1]?.callback();
  await expect(answer).rejects.toThrow(TimeoutError);
  expect(scheduled.map(({ delayMs }) => delayMs)).toEqual([100, extraMs]);
});
