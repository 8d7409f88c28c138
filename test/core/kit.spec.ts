import { runInNewContext } from 'node:vm';
import { spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import {
  Deadline,
  errorText,
  importClient,
  JoinedSignal,
  scheduleReplyTimeout,
  Semaphore,
  systemClock,
} from 'nestjs-distributed-lock/core';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { blockEventLoop, Gate } from '../conformance/contract.js';

describe('the kit for writers of stores', () => {
  let clock: ManualClock;
  beforeEach(() => {
    clock = new ManualClock();
  });

  it.each([
    ['is missing', { code: 'ERR_MODULE_NOT_FOUND' }, 'x() needs the package x-client: npm install x-client@1'],
    ['cannot be loaded, as in a bundle', {}, 'it could not be loaded (Error: Dynamic require of "events")'],
  ])('refuses a client that %s', async (_what, properties, message) => {
    // Under jest, an error of the loader is of another realm.
    const failure: unknown = Object.assign(runInNewContext(`new Error('Dynamic require of "events"')`), properties);
    const client = { neededBy: 'x()', name: 'x-client', install: 'x-client@1', option: 'url' };
    const refused = importClient(() => Promise.reject(failure), client);
    await expect(refused).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'url' });
    await expect(refused).rejects.toThrow(message);
    await expect(importClient(() => Promise.resolve('client'), client)).resolves.toBe('client');
  });

  it('joins signals for as long as it is needed, and leaves nothing in them', () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const signals = [first.signal, second.signal];
    const listeners = (): number[] => signals.map((signal) => getEventListeners(signal, 'abort').length);
    const ended = new JoinedSignal(signals);
    const joined = new JoinedSignal(signals);
    ended.end();
    expect(listeners()).toEqual([1, 1]);
    second.abort('why');
    expect([joined.signal.reason, ended.signal.aborted]).toEqual(['why', false]);
    expect(new JoinedSignal(signals).signal.reason).toBe('why');
    joined.end();
    expect(listeners()).toEqual([0, 0]);
  });

  describe('a reply time-out', () => {
    it('comes after the time, once, and not when it is cancelled', async () => {
      const silentAt: number[] = [];
      const [, cancelled] = [0, 1].map(() => scheduleReplyTimeout(clock, 100, () => silentAt.push(clock.now())));
      await clock.advance(99);
      cancelled?.cancel();
      await clock.advance(1_000);
      expect(silentAt).toEqual([100]);
    });

    it('comes after an answer that arrived while the event loop was blocked', async () => {
      const server = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] });
      const answer = (): Promise<unknown> => once(server.stdout, 'data');
      server.stdin.write('are you there?');
      await answer();
      const first = await new Promise((resolve) => {
        const timeout = scheduleReplyTimeout(systemClock, 20, () => resolve('silence'));
        void answer().then(() => timeout.cancel());
        void answer().then(() => resolve('the answer'));
        server.stdin.write('again');
        blockEventLoop(2_000);
      });
      expect(first).toBe('the answer');
      server.stdin.end();
      await once(server, 'close');
    });
  });

  describe('a semaphore', () => {
    it('runs so many at a time, in the order of the calls, also after failures', async () => {
      const semaphore = new Semaphore(2);
      const gates = Array.from({ length: 5 }, () => new Gate());
      const [begun, ended]: [number[], unknown[]] = [[], []];
      const tasks = gates.map((gate, i) =>
        semaphore
          .run(async () => {
            begun.push(i);
            await gate.opened;
            if (i === 0) throw new Error('failed');
          })
          .then(
            () => ended.push(i),
            (error: unknown) => ended.push(errorText(error)),
          ),
      );
      expect(begun).toEqual([0, 1]);
      gates[0]?.open();
      await tasks[0];
      expect(begun).toEqual([0, 1, 2]);
      for (const gate of gates) gate.open();
      await Promise.all(tasks);
      expect([begun, new Set(ended)]).toEqual([[0, 1, 2, 3, 4], new Set([1, 2, 3, 4, 'failed'])]);
      await expect(semaphore.enter()).resolves.toBe(true);
    });

    it('lets those in a hurry in first, and nobody after the deadline, which may move', async () => {
      const semaphore = new Semaphore(1);
      await semaphore.enter();
      let deadline = Deadline.after(100, clock);
      const entered: string[] = [];
      const enter = (name: string, wait: Parameters<Semaphore['enter']>[0]): void =>
        void semaphore.enter(wait).then((isIn) => entered.push(`${name} ${isIn} ${clock.now()}`));
      enter('patient', {});
      enter('hurried', { inHurry: true });
      enter('late', { deadline: () => deadline, inHurry: true });
      await clock.advance(50);
      deadline = Deadline.after(150, clock);
      await clock.advance(200);
      semaphore.leave();
      semaphore.leave();
      semaphore.leave();
      await clock.advance(0);
      expect(entered).toEqual(['late false 200', 'hurried true 250', 'patient true 250']);
      await expect(semaphore.enter()).resolves.toBe(true);
      await expect(semaphore.enter({ deadline: () => Deadline.after(0) })).resolves.toBe(false);
    });

    it('lets go of those who stop waiting, and is left by none of them', async () => {
      const semaphore = new Semaphore(1);
      expect([semaphore.enterAtOnce(), semaphore.enterAtOnce()]).toEqual([true, false]);
      const controller = new AbortController();
      const { signal } = controller;
      const [stopping, staying] = [semaphore.enter({ signal }), semaphore.enter()];
      controller.abort();
      await expect(stopping).resolves.toBe(false);
      expect(getEventListeners(signal, 'abort')).toEqual([]);
      semaphore.leave();
      await expect(staying).resolves.toBe(true);
      expect(semaphore.enterAtOnce()).toBe(false);
    });
  });

  it.each([
    [new Error('refused'), 'refused'],
    [new AggregateError([new Error('::1'), new AggregateError([new Error('a'), 'b'])]), '::1; a; b'],
    [new AggregateError([new Error('unseen')], 'all of them'), 'all of them'],
    [{ message: 'of another realm' }, 'of another realm'],
    ['a text', 'a text'],
    [undefined, 'undefined'],
    [Object.create(null), 'an object that has no text'],
  ])('has the text of %p', (error, text) => {
    expect(errorText(error)).toBe(text);
  });
});
