import { jest } from '@jest/globals';

// Fakes them before the clock is loaded, as `fakeTimers: { enableGlobally: true }` does.
beforeAll(() => void jest.useFakeTimers());
afterAll(() => void jest.useRealTimers());

it('a manual clock moves on, although timers were faked before it was loaded', async () => {
  const { ManualClock } = await import('nestjs-distributed-lock/testing');
  const clock = new ManualClock();
  const calls: number[] = [];
  clock.schedule(10, () => void calls.push(clock.now()));
  await clock.advance(20);
  expect([calls, clock.now()]).toEqual([[10], 20]);
});
