import { ManualClock } from 'nestjs-distributed-lock/testing';
import { ReplyTimeouts } from '../../lib/core/kit/reply-timeouts.js';

describe('ReplyTimeouts', () => {
  const found: number[] = [];
  let dueAt = Infinity;

  function watching(clock: ManualClock): ReplyTimeouts {
    found.length = 0;
    dueAt = Infinity;
    const onOverdue = (): void => {
      found.push(clock.now());
      dueAt = Infinity;
    };
    return new ReplyTimeouts(clock, 100, () => dueAt, onOverdue);
  }

  it('looks when something is due, as often as that moves on, and not at all while nothing is', async () => {
    const clock = new ManualClock();
    const watch = watching(clock);
    dueAt = 100;
    watch.start();
    await clock.advance(60);
    dueAt = 160;
    watch.start();
    await clock.advance(60);
    expect(found).toEqual([]);
    await clock.advance(60);
    expect(found).toEqual([160]);
    await clock.advance(1_000);
    dueAt = clock.now() + 100;
    watch.start();
    await clock.advance(100);
    expect(found).toEqual([160, 1280]);
  });

  it('gives what may have arrived while the event loop was blocked a moment to be read', async () => {
    const clock = new ManualClock();
    const watch = watching(clock);
    dueAt = 100;
    watch.start();
    clock.stall(500);
    await clock.advance(0);
    expect(found).toEqual([]);
    await clock.advance(25);
    expect(found).toEqual([525]);
  });
});
