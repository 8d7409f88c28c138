import { LockTimeoutError } from 'nestjs-distributed-lock/core';
import { describeRedis } from './redis-world.js';
import { timeLimitOf } from '../../support/machine.js';

describeRedis('the place in the line of Redis', (world) => {
  it.each(['a time-out', 'an abort'])('passes to the next caller of the process after %s', async (end) => {
    const [holder, here, there] = [world.service(), world.service(), world.service()];
    const held = await holder.acquire('k');
    const controller = new AbortController();
    const waitMs = end === 'a time-out' ? timeLimitOf(500) : 60_000;
    const first = here.acquire('k', { waitMs, signal: controller.signal });
    const gone = expect(first).rejects.toThrow(end === 'a time-out' ? LockTimeoutError : 'enough');
    await world.untilWaiting('k', 1);
    const order: string[] = [];
    const waits = [here.withLock('k', () => void order.push('second'), { waitMs: 60_000 })];
    waits.push(there.withLock('k', () => void order.push('third'), { waitMs: 60_000 }));
    await world.untilWaiting('k', 2);
    if (end === 'an abort') controller.abort(new Error('enough'));
    await gone;
    await held.release();
    await Promise.all(waits);
    expect(order).toEqual(['second', 'third']);
    expect(await world.waitersFor('k')).toBe(0);
  });

  it('is given up with the last caller of the process', async () => {
    const [holder, here] = [world.service(), world.service()];
    await using _held = await holder.acquire('k');
    const waits = [1_000, 2_000].map((waitMs) => here.acquire('k', { waitMs: timeLimitOf(waitMs) }));
    const refused = Promise.all(waits.map((wait) => expect(wait).rejects.toThrow(LockTimeoutError)));
    await world.untilWaiting('k', 1);
    await refused;
    await world.untilWaiting('k', 0);
  });
});
