import { createRequire, syncBuiltinESMExports } from 'node:module';
import { type Clock, LockService, systemClock } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { TimerWheel, WheelTimer } from '../../lib/core/time/timer-wheel.js';
import { eventually } from '../support/eventually.js';
import { liveBytes } from '../support/live-bytes.js';

describe('timers', () => {
  let clock: ManualClock;
  let grid: TimerWheel;

  beforeEach(() => {
    clock = new ManualClock();
    grid = new TimerWheel(clock);
  });

  it('run in real time while a test framework has faked those of Node', async () => {
    const { setTimeout: realSetTimeout, performance: realPerformance } = globalThis;
    const realNow = Reflect.get(realPerformance, 'now');
    const nodeTimers: object = createRequire(import.meta.url)('node:timers');
    const before = systemClock.now();
    try {
      const fakes = { setTimeout: () => undefined, performance: { now: () => 0, timeOrigin: () => undefined } };
      Object.assign(globalThis, fakes);
      // As fake-timers does: https://github.com/sinonjs/fake-timers/issues/466
      Object.assign(nodeTimers, { setTimeout: fakes.setTimeout });
      realPerformance.now = () => 0;
      syncBuiltinESMExports();
      // As of Jest 29: https://github.com/jestjs/jest/issues/15744
      await expect(new LockService(memory()).tryAcquire('key')).resolves.not.toBeNull();
      await new Promise<void>((resolve) => void systemClock.schedule(5, resolve));
      expect(systemClock.now()).toBeGreaterThan(before);
    } finally {
      Object.assign(globalThis, { setTimeout: realSetTimeout, performance: realPerformance });
      Object.assign(nodeTimers, { setTimeout: realSetTimeout });
      realPerformance.now = realNow;
      syncBuiltinESMExports();
    }
  });

  describe('on the grid', () => {
    it('run in the same turn when they were set for about the same time', async () => {
      const turns = new Set<number>();
      for (let i = 0; i < 100; i += 1) new WheelTimer(grid, () => turns.add(clock.now())).setAtOrBefore(400 + i, 100);
      await clock.advance(1_000);
      expect([...turns]).toEqual([400]);
    });

    it('run at most once when they are set again, and not when they are cancelled', async () => {
      const ran: string[] = [];
      const timers = ['a', 'b', 'c', 'd'].map((name) => new WheelTimer(grid, () => ran.push(`${name} ${clock.now()}`)));
      for (const timer of timers) timer.setAtOrAfter(301, 100);
      const [a, b, c] = timers;
      a?.cancel();
      b?.setAtOrBefore(250, 100);
      c?.setAtOrBefore(500, 100);
      c?.cancel();
      c?.setAtOrAfter(500, 100);
      await clock.advance(1_000);
      a?.cancel();
      expect(ran).toEqual(['b 200', 'd 400', 'c 500']);
    });

    it('leave out one that another of the same turn cancels', async () => {
      const ran: WheelTimer[] = [];
      const timers: WheelTimer[] = [];
      for (let i = 0; i < 3; i += 1) {
        const timer = new WheelTimer(grid, () => {
          ran.push(timer);
          for (const other of timers) if (other !== timer) other.cancel();
        });
        timers.push(timer);
        timer.setAtOrBefore(400, 100);
      }
      await clock.advance(400);
      expect(ran).toHaveLength(1);
    });

    it('never run before the time they were set from, however it is rounded', () => {
      let at = 0;
      const exact: Clock = {
        now: () => 0,
        schedule(delayMs) {
          at = delayMs;
          return { cancel: () => undefined };
        },
      };
      const early: string[] = [];
      for (let ttlMs = 10.1; ttlMs < 2_000; ttlMs *= 1.001) {
        for (let place = 1; place < 100; place += 1) {
          const gridMs = ttlMs / 12;
          const time = gridMs * place * (1 + Number.EPSILON);
          new WheelTimer(new TimerWheel(exact), () => undefined).setAtOrAfter(time, gridMs);
          if (at < time || at > time + gridMs * (1 + 1e-9)) early.push(`${time} on ${gridMs}: ${at}`);
        }
      }
      expect(early).toEqual([]);
    });

    it('leave few slots behind when thousands of different times are set and cancelled', () => {
      const alarms = new Set<object>();
      const counting: Clock = {
        now: () => 0,
        schedule() {
          const alarm = { cancel: () => void alarms.delete(alarm) };
          alarms.add(alarm);
          return alarm;
        },
      };
      const wheel = new TimerWheel(counting);
      for (let i = 1; i <= 5_000; i += 1) {
        const timer = new WheelTimer(wheel, () => undefined);
        timer.setAtOrBefore(2_000_000 + i * 10, 10);
        timer.cancel();
      }
      expect(alarms.size).toBeLessThan(70);
    });

    it('run in several turns when they are very many, so that other work comes in between', async () => {
      let [ran, meanwhile] = [0, 0];
      for (let i = 0; i < 600; i += 1) {
        if (i === 300) new WheelTimer(grid, () => setImmediate(() => (meanwhile = ran))).setAtOrBefore(400, 100);
        new WheelTimer(grid, () => (ran += 1)).setAtOrBefore(400, 100);
      }
      await clock.advance(400);
      await eventually(() => expect(ran).toBe(600));
      expect(meanwhile).toBeGreaterThan(0);
      expect(meanwhile).toBeLessThan(600);
    });

    it('keep nothing once they are cancelled', async () => {
      const setAndCancel = (): void => {
        const large = Array.from({ length: 100 }, () => 1);
        const timer = new WheelTimer(grid, () => void large.length);
        timer.setAtOrBefore(400, 100);
        timer.cancel();
      };
      setAndCancel();
      const bytesBefore = liveBytes();
      for (let i = 0; i < 20_000; i += 1) setAndCancel();
      expect(liveBytes() - bytesBefore).toBeLessThan(1_000_000);
    });
  });
});
