import { describe, expect, it } from '@jest/globals';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { Batch } from '../../../lib/backends/redis/batch.js';
import { SilenceWatch } from '../../../lib/backends/redis/silence-watch.js';

describe('SilenceWatch', () => {
  it('has one timer for the oldest, and finds each batch in time that is not over by then', async () => {
    const clock = new ManualClock();
    const found: string[] = [];
    const names = new Map<Batch, string>();
    const watch = new SilenceWatch(clock, (overdue) => {
      found.push(`${names.get(overdue)} ${clock.now()}`);
      watch.delete(overdue);
    });
    const send = (name: string): Batch => {
      const batch = new Batch(clock.now() + 100, () => undefined);
      names.set(batch, name);
      watch.add(batch);
      return batch;
    };
    const answered = send('answered');
    await clock.advance(60);
    send('second');
    send('third');
    watch.delete(answered);
    await clock.advance(60);
    const late = send('fourth');
    await clock.advance(50);
    expect(found).toEqual(['second 160', 'third 160']);
    watch.delete(late);
    await clock.advance(1_000);
    send('fifth');
    await clock.advance(100);
    expect(found).toEqual(['second 160', 'third 160', 'fifth 1270']);
  });
});
