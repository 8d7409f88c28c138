import { Injectable, Module } from '@nestjs/common';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { DistributedLockModule, Locked, LockKey, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { LockTracingModule, type LockTracingModuleOptions } from 'nestjs-distributed-lock/opentelemetry';
import { context } from './apps.js';

@Injectable()
class Invoices {
  @Locked('invoice_:id')
  async send(@LockKey('id') id: string): Promise<string> {
    return id;
  }
}

describe('the names of spans', () => {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  afterEach(() => exporter.reset());

  const names = (): string[] => exporter.getFinishedSpans().map(({ name }) => name);
  async function start(options: LockTracingModuleOptions = {}) {
    const forRoot = () => LockTracingModule.forRoot({ tracerProvider, ...options });
    @Module({ imports: [forRoot()] })
    class Feature {}
    const lockModule = DistributedLockModule.forRoot({ backend: memory(), namespace: 'shop' });
    const app = await context({ imports: [lockModule, forRoot(), Feature], providers: [Invoices] });
    return { locks: app.get(LockService), invoices: app.get(Invoices) };
  }

  it('are what the application says of a plain key, and every lock has its spans once', async () => {
    const { locks, invoices } = await start({ templateOf: (key) => `my ${key.length}` });
    await locks.withLock('user:alice', () => undefined);
    await invoices.send('alice');
    expect(names()).toEqual(['acquire my 10', 'hold my 10', 'acquire invoice_:id', 'hold invoice_:id']);
  });

  it('are few, and that of a method is among them after any number of other keys', async () => {
    const { locks, invoices } = await start({ templateOf: (key) => key });
    for (let n = 0; n < 300; n += 1) await locks.withLock(`user:${n}`, () => undefined);
    await invoices.send('alice');
    const holds = new Set(names().filter((name) => name.startsWith('hold ')));
    expect(holds.size).toBe(202);
    expect([...holds]).toEqual(expect.arrayContaining(['hold user:0', 'hold (others)', 'hold invoice_:id']));
  });
});
