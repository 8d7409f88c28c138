import type { Lease } from '../../lib/core/leasing/lease.js';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { TimerWheel } from '../../lib/core/time/timer-wheel.js';
import { Watchdog } from '../../lib/core/holding/watchdog.js';

const TTL = 1_200;
const TRUSTED = TTL * 0.99 - 2;

describe('Watchdog', () => {
  let clock: ManualClock;
  let events: string[];
  let renewals: number[];
  let answer: () => Promise<boolean>;
  let revocation: AbortController;

  beforeEach(() => {
    clock = new ManualClock();
    events = [];
    renewals = [];
    answer = async () => true;
    revocation = new AbortController();
  });

  const watch = (renews = true, sentAt = 0, grid = new TimerWheel(clock), ttlMs = TTL, isWatched = false): Watchdog => {
    const lease: Lease = {
      fencingToken: 1n,
      owner: 'o',
      times: { requestedTtlMs: ttlMs, serverTtlMs: ttlMs, trustedMs: ttlMs, sentAt },
      renew: () => {
        renewals.push(clock.now());
        return answer();
      },
      release: async () => undefined,
      keepClosedFor: async () => undefined,
      passOn: async () => true,
      cancelAutoRelease: () => undefined,
      revoked: revocation.signal,
    };
    const watchdog = new Watchdog(lease, renews, clock, grid, isWatched);
    watchdog.listener = {
      onJeopardy: () => events.push(`jeopardy ${clock.now()}`),
      onSafe: () => events.push(`safe ${clock.now()}`),
      onLost: (reason) => events.push(`${reason} ${clock.now()}`),
    };
    return watchdog;
  };

  it('renews at a third of the TTL, for as long as it is answered', async () => {
    const watchdog = watch();
    await clock.advance(10 * TTL);
    expect(renewals.slice(0, 3)).toEqual([400, 800, 1_200]);
    expect(watchdog.isTrusted).toBe(true);
    expect(events).toEqual([]);
    await watchdog.stop();
  });

  it.each([
    [TTL, 15],
    [24, 8],
  ])('renews a watched lease of %d ms soon, and not later than another one', async (ttlMs, firstAt) => {
    const watchdog = watch(true, 0, undefined, ttlMs, true);
    await clock.advance(2 * ttlMs);
    expect(renewals[0]).toBe(firstAt);
    expect(events).toEqual([]);
    await watchdog.stop();
  });

  it('is over at once where a blocked event loop comes back after the end, with an unanswered renewal', async () => {
    watch();
    answer = () => new Promise(() => undefined);
    await clock.advance(500);
    const now = clock.now.bind(clock);
    clock.now = () => now() + TTL;
    await clock.advance(300);
    expect(events).toEqual([`expired ${800 + TTL}`]);
  });

  it('asks again in jeopardy, and is safe after an answer', async () => {
    const watchdog = watch();
    answer = () => Promise.reject(new Error('down'));
    await clock.advance(500);
    expect(events).toEqual(['jeopardy 400']);
    expect(watchdog.isInJeopardy).toBe(true);
    answer = async () => true;
    await clock.advance(60);
    expect(events).toEqual(['jeopardy 400', 'safe 520']);
    expect(watchdog.isInJeopardy).toBe(false);
    await watchdog.stop();
  });

  it('tells the loss at the end of trust when nothing is ever answered', async () => {
    const watchdog = watch();
    answer = () => new Promise(() => undefined);
    await clock.advance(TTL);
    expect(renewals).toEqual([400]);
    expect(events).toEqual(['jeopardy 800', `expired ${TRUSTED}`]);
    expect(watchdog.isTrusted).toBe(false);
  });

  it('counts trust from the sending of the renewal, not from its answer', async () => {
    const watchdog = watch();
    let reply = (_: boolean): void => undefined;
    answer = () => new Promise((resolve) => (reply = resolve));
    await clock.advance(1_000);
    reply(true);
    answer = () => new Promise(() => undefined);
    await clock.advance(0);
    expect(watchdog.isInJeopardy).toBe(false);
    await clock.advance(10 * TTL);
    expect(events.at(-1)).toBe(`expired ${400 + TRUSTED}`);
  });

  it('does not revive a lease by an answer that comes too late', async () => {
    const watchdog = watch();
    let reply = (_: boolean): void => undefined;
    answer = () => new Promise((resolve) => (reply = resolve));
    await clock.advance(500);
    clock.stall(TTL);
    reply(true);
    await clock.advance(0);
    expect(watchdog.isTrusted).toBe(false);
    expect(events.at(-1)).toMatch(/^expired/u);
  });

  it('knows a loss in the first synchronous step after a stall', async () => {
    const watchdog = watch();
    clock.stall(TTL);
    expect(watchdog.isTrusted).toBe(false);
    expect(renewals).toEqual([]);
    await clock.advance(0);
    expect(events).toEqual([`expired ${TTL}`]);
    expect(renewals).toEqual([]);
  });

  it('raises no alarm for a stall that ends within the TTL', async () => {
    const watchdog = watch();
    clock.stall(TTL * 0.6);
    await clock.advance(TTL);
    expect(events).toEqual([]);
    expect(watchdog.isTrusted).toBe(true);
    await watchdog.stop();
  });

  it('tells a revocation at once, from the server or from a renewal', async () => {
    watch();
    revocation.abort();
    expect(events).toEqual(['revoked 0']);
    revocation = new AbortController();
    watch();
    answer = async () => false;
    await clock.advance(400);
    expect(events).toEqual(['revoked 0', 'revoked 400']);
  });

  it('does not renew without renewals, and ends at the end of trust with no jeopardy before', async () => {
    watch(false);
    await clock.advance(TTL);
    expect(renewals).toEqual([]);
    expect(events).toEqual([`expired ${TRUSTED}`]);
  });

  it('takes a renewal that throws for one that failed', async () => {
    watch();
    answer = () => {
      throw new Error('not even asked');
    };
    await clock.advance(400);
    expect(events).toEqual(['jeopardy 400']);
    answer = async () => true;
    await clock.advance(100);
    expect(events).toEqual(['jeopardy 400', 'safe 460']);
  });

  it('repeats renewals that failed together, so that they share a request again', async () => {
    const grid = new TimerWheel(clock);
    const watchdogs = Array.from({ length: 50 }, () => {
      revocation = new AbortController();
      return watch(true, 0, grid);
    });
    let requests = 0;
    let open = false;
    answer = () => {
      if (!open) requests += 1;
      open = true;
      queueMicrotask(() => (open = false));
      return Promise.reject(new Error('down'));
    };
    await clock.advance(460);
    expect(renewals).toHaveLength(100);
    expect(requests).toBe(2);
    for (const watchdog of watchdogs) await watchdog.stop();
  });

  it('leaves no timer behind when the last renewal is over', async () => {
    const watchdog = watch();
    let reply = (_: boolean): void => undefined;
    answer = () => new Promise((resolve) => (reply = resolve));
    await clock.advance(400);
    const timers = timersOf(clock);
    const stop = watchdog.stop();
    reply(true);
    await stop;
    expect(timers()).toBe(0);
  });

  it('says nothing after stop, which waits for a renewal in flight', async () => {
    const watchdog = watch();
    let reply = (_: boolean): void => undefined;
    answer = () => new Promise((resolve) => (reply = resolve));
    await clock.advance(400);
    let stopped = false;
    const stop = watchdog.stop()?.then(() => (stopped = true));
    await clock.advance(10);
    expect(stopped).toBe(false);
    reply(false);
    await stop;
    await clock.advance(2 * TTL);
    expect(events).toEqual([]);
  });
});

/** Counts the timers that are set from now on and neither cancelled nor run. */
function timersOf(clock: ManualClock): () => number {
  let open = 0;
  const schedule = clock.schedule.bind(clock);
  clock.schedule = (...call) => {
    const timer = schedule(...call);
    open += 1;
    return {
      cancel: () => {
        open -= 1;
        timer.cancel();
      },
    };
  };
  return () => open;
}
