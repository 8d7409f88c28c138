import { ServerClock } from '../../../lib/backends/memcached/server-clock.js';
import { describeWanted } from '../../support/wanted-backends.js';

const T = 1_800_000_000;

describeWanted(['memcached'], 'the clock of a server', () => {
  it('gives dates that no true time within the error of a reading can make too early', () => {
    const clock = new ServerClock(T, 5_000, 5_000);
    for (let behindS = 0; behindS <= 2.5; behindS += 0.01) {
      for (const laterMs of [0, 1, 500, 999, 29_000]) {
        const trueTime = T + behindS + laterMs / 1_000;
        const date = clock.exptimeAfter(2_000, 5_000 + laterMs);
        expect(date).toBeGreaterThanOrEqual(trueTime + 2);
        expect(date).toBeLessThan(T + laterMs / 1_000 + 2 + 2.5 + 1);
      }
    }
  });

  it('does not believe a server that stood still: of two readings the later time counts', () => {
    const clock = new ServerClock(T, 0, 0);
    clock.record(T + 25, 30_000, 30_000);
    expect(clock.exptimeAfter(2_000, 30_000)).toBeGreaterThanOrEqual(T + 32);
    clock.record(T + 60, 60_000, 60_000);
    expect(clock.exptimeAfter(2_000, 60_000)).toBeGreaterThanOrEqual(T + 62);
  });

  it('is nowhere ahead of the server after a slow reply, wherever the server read its clock', () => {
    for (const readAt of [5_000, 9_000, 15_000]) {
      const clock = new ServerClock(T, 5_000, 15_000);
      const trueTimeMs = (now: number) => T * 1_000 + now - readAt;
      const { lowerBoundMs, uncertaintyMs } = clock.boundsAt(20_000);
      expect(lowerBoundMs).toBeLessThanOrEqual(trueTimeMs(20_000));
      expect(lowerBoundMs + uncertaintyMs).toBeGreaterThanOrEqual(trueTimeMs(20_000) + 2_500);
      expect(clock.exptimeAfter(2_000, 20_000) * 1_000).toBeGreaterThanOrEqual(trueTimeMs(22_000) + 2_500);
    }
  });

  it('follows a server whose clock is slower or faster, with the next two readings', () => {
    const clock = new ServerClock(T, 0, 0);
    clock.record(T + 29, 30_000, 30_000);
    clock.record(T + 58, 60_000, 60_000);
    expect(clock.exptimeAfter(2_000, 60_000)).toBeLessThan(T + 65);
    clock.record(T + 100, 90_000, 90_000);
    expect(clock.exptimeAfter(2_000, 90_000)).toBeGreaterThanOrEqual(T + 102);
  });

  it('numbers by our own wall clock as long as the server does not disagree', () => {
    const clock = new ServerClock(T, 0, 0);
    const at = (wallMs: number) => Number(clock.microsecondsAt(10_000, wallMs)) / 1e6;
    expect(at((T + 11.234) * 1_000)).toBe(T + 11.234);
    expect(at((T + 3_611) * 1_000)).toBe(T + 12.5);
    expect(at((T - 3_589) * 1_000)).toBe(T + 10);
    expect(clock.microsecondsAt(0)).toBeLessThan(2n ** 52n);
  });

  it.each([0, 12, 30 * 86_400 - 1, 2 ** 31 - 1, Number.NaN, Infinity, -T])('is no clock that shows %p', (seconds) => {
    expect(() => new ServerClock(seconds, 0, 0)).toThrow(`the server's clock shows ${seconds} seconds since 1970`);
  });
});
