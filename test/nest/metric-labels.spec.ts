import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { DistributedLockModule, Locked, LockKey, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { LockMetricsModule, type LockMetricsModuleOptions } from 'nestjs-distributed-lock/metrics';
import { Registry } from 'prom-client';
import { context } from './apps.js';

@Injectable()
class Invoices {
  @Locked('invoice_:id')
  async send(@LockKey('id') id: string): Promise<string> {
    return id;
  }
}

describe('the label of a key in metrics', () => {
  async function start(options: LockMetricsModuleOptions = {}) {
    const register = new Registry();
    const app = await context({
      imports: [DistributedLockModule.forRoot(memory()), LockMetricsModule.forRoot({ register, ...options })],
      providers: [Invoices],
    });
    const labels = async (): Promise<unknown[]> => {
      const { values } = (await register.getSingleMetric('distributed_lock_acquisitions_total')?.get()) ?? {
        values: [],
      };
      return values.map((value) => value.labels['template']);
    };
    return { labels, register, locks: app.get(LockService), invoices: app.get(Invoices) };
  }

  it('shows nothing of people, and knows the template of a method after any number of other keys', async () => {
    const { labels, locks, invoices } = await start();
    const word = (n: number): string => String.fromCodePoint(97 + (n % 26), 97 + Math.floor(n / 26));
    for (let n = 0; n < 300; n += 1) await locks.withLock(`${word(n)}:alice@example.com`, () => undefined);
    await invoices.send('alice');
    const found = await labels();
    expect(found).toHaveLength(202);
    expect(found).toEqual(expect.arrayContaining(['aa:*', '(others)', 'invoice_:id']));
    expect(JSON.stringify(found)).not.toContain('alice');
  });

  it('is what the application says of a plain key', async () => {
    const { labels, locks, invoices } = await start({ templateOf: (key) => `my ${key.length}` });
    await locks.withLock('user:alice', () => undefined);
    await invoices.send('alice');
    await expect(labels()).resolves.toEqual(['my 10', 'invoice_:id']);
  });

  it('is one for all keys that the application has no label for, and the metrics are read all the same', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
    const failing = (key: string): string => {
      throw new Error(`no label for ${key.length} characters`);
    };
    const { labels, locks, register } = await start({ templateOf: failing });
    await locks.withLock('user:alice', () => undefined);
    await using _lock = await locks.acquire('user:bob');
    await expect(register.metrics()).resolves.toContain('distributed_lock_held{');
    await expect(labels()).resolves.toEqual(['(others)']);
    expect(warn.mock.calls.map(String)).toEqual(['templateOf of locks threw: no label for 10 characters']);
    warn.mockRestore();
  });
});
