import { Module } from '@nestjs/common';
import { DistributedLockModule, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { LockMetrics, LockMetricsModule } from 'nestjs-distributed-lock/metrics';
import { AggregatorRegistry, Registry } from 'prom-client';
import { context } from './apps.js';

const ACQUISITIONS = 'distributed_lock_acquisitions_total';
const HELD = 'distributed_lock_held';
const WAITING = 'distributed_lock_waiting';

async function sumOf(register: Registry, name: string): Promise<number | undefined> {
  const metric = await register.getSingleMetric(name)?.get();
  return metric?.values.reduce((sum, { value }) => sum + value, 0);
}

describe('LockMetricsModule', () => {
  it('counts each lock once, however many modules import it', async () => {
    const register = new Registry();
    @Module({ imports: [LockMetricsModule.forRoot({ register })] })
    class Feature {}
    const imports = [DistributedLockModule.forRoot(memory()), LockMetricsModule.forRoot({ register }), Feature];
    const app = await context({ imports });
    const lock = await app.get(LockService).acquire('a');
    expect([await sumOf(register, ACQUISITIONS), await sumOf(register, HELD)]).toEqual([1, 1]);
    await lock.release();
  });

  it('has its metrics in a registry that was cleared before', async () => {
    const register = new Registry();
    const start = () =>
      context({ imports: [DistributedLockModule.forRoot(memory()), LockMetricsModule.forRoot({ register })] });
    await (await start()).close();
    register.clear();
    const app = await start();
    await app.get(LockService).withLock('a', () => undefined);
    expect(await sumOf(register, ACQUISITIONS)).toBe(1);
  });
});

describe('LockMetrics.observe', () => {
  it('counts in each registry that it is given', async () => {
    const registries = [new Registry(), new Registry()];
    const app = await context({ imports: [DistributedLockModule.forRoot(memory())] });
    const locks = app.get(LockService);
    for (const register of registries) LockMetrics.of({ register }).observe(locks);
    await locks.withLock('a', () => undefined);
    for (const register of registries) expect(await sumOf(register, ACQUISITIONS)).toBe(1);
  });

  it('counts on until each of its callers has stopped', async () => {
    const register = new Registry();
    const app = await context({ imports: [DistributedLockModule.forRoot(memory())] });
    const locks = app.get(LockService);
    const stopFunctions = [LockMetrics.of({ register }).observe(locks), LockMetrics.of({ register }).observe(locks)];
    for (const expected of [1, 2, 2]) {
      await locks.withLock('a', () => undefined);
      expect(await sumOf(register, ACQUISITIONS)).toBe(expected);
      stopFunctions.shift()?.();
    }
  });

  it('counts the callers that wait now, also after the metrics were reset', async () => {
    const register = new Registry();
    await using locks = new LockService(memory());
    LockMetrics.of({ register }).observe(locks);
    const lock = await locks.acquire('a');
    const waits = [locks.acquire('a'), locks.acquire('a')];
    const counts = [await sumOf(register, WAITING)];
    register.resetMetrics();
    counts.push(await sumOf(register, WAITING));
    await lock.release();
    for (const wait of waits) await (await wait).release();
    counts.push(await sumOf(register, WAITING));
    expect(counts).toEqual([2, 2, 0]);
  });
});

describe('backend_up', () => {
  const UP = 'distributed_lock_backend_up';

  it('is 0 while a backend of that label does not answer, and is gone when nobody observes it', async () => {
    const register = new Registry();
    await using up = new LockService(memory());
    await using silent = new LockService(memory());
    await up.withLock('a', () => undefined);
    const metrics = LockMetrics.of({ register });
    const stopFunctions = [silent, up].map((locks) => metrics.observe(locks));
    expect(await sumOf(register, UP)).toBe(0);
    stopFunctions.shift()?.();
    expect(await sumOf(register, UP)).toBe(1);
    stopFunctions.shift()?.();
    expect((await register.getSingleMetric(UP)?.get())?.values).toEqual([]);
  });

  it('is the least of all workers of a cluster', async () => {
    const register = new Registry();
    await using locks = new LockService(memory());
    LockMetrics.of({ register }).observe(locks);
    const up = await register.getMetricsAsJSON();
    await locks.withLock('a', () => undefined);
    const workers = AggregatorRegistry.aggregate([up, await register.getMetricsAsJSON()]);
    expect((await workers.getSingleMetric(UP)?.get())?.values).toMatchObject([{ value: 0 }]);
  });
});
