import { Injectable } from '@nestjs/common';
import { context, type Span, type SpanContext, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { DistributedLockModule, Locked, LockKey, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { LockSpans, LockTracingModule } from 'nestjs-distributed-lock/opentelemetry';
import { context as applicationContext } from './apps.js';

const exporter = new InMemorySpanExporter();
/** Spans count their times from a wall clock of their own: what came before what is told by the order of their events. */
const events: string[] = [];
const eventOf = (what: 'start' | 'end', { spanId }: SpanContext): string => `${what} ${spanId}`;
const recorder: SpanProcessor = {
  onStart: (span) => void events.push(eventOf('start', span.spanContext())),
  onEnd: (span) => void events.push(eventOf('end', span.spanContext())),
  forceFlush: async () => undefined,
  shutdown: async () => undefined,
};
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter), recorder] });
const tracer = tracerProvider.getTracer('test');

@Injectable()
class Sales {
  @Locked('sale_:id')
  async buy(@LockKey('id') _id: number, work: () => Promise<unknown> = async () => undefined): Promise<void> {
    await tracer.startActiveSpan('write', async (span) => {
      await work();
      span.end();
    });
  }
}

/** Runs `work` in a span of its own, as a request does. */
function request<T>(name: string, work: () => Promise<T>): Promise<T> {
  return tracer.startActiveSpan(name, async (span: Span) => {
    try {
      return await work();
    } finally {
      span.end();
    }
  });
}

const spans = (): ReadableSpan[] => exporter.getFinishedSpans();
const named = (name: string): ReadableSpan[] => spans().filter((span) => span.name === name);
const parentOf = (span: ReadableSpan): string | undefined =>
  spans().find((other) => other.spanContext().spanId === span.parentSpanContext?.spanId)?.name;
const msOf = ([seconds, nanoseconds]: ReadableSpan['duration']): number => seconds * 1e3 + nanoseconds / 1e6;
const startOf = (span: ReadableSpan): number => events.indexOf(eventOf('start', span.spanContext()));
const endOf = (span: ReadableSpan): number => events.indexOf(eventOf('end', span.spanContext()));

describe('spans', () => {
  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(tracerProvider);
  });
  afterAll(() => {
    context.disable();
    trace.disable();
  });
  beforeEach(() => {
    exporter.reset();
    events.length = 0;
  });

  it('of a flash sale: each buyer waits and holds under its own request, also when the lease is handed on', async () => {
    const app = await applicationContext({
      imports: [
        DistributedLockModule.forRoot({ backend: memory(), namespace: 'shop', maxHandOffMs: 60_000 }),
        LockTracingModule,
      ],
      providers: [Sales],
    });
    const sales = app.get(Sales);
    const buyers = Array.from({ length: 5 }, (_, n) => `buyer ${n}`);
    await Promise.all(buyers.map((buyer) => request(buyer, () => sales.buy(42))));
    const [waits, holds, writes] = ['acquire sale_:id', 'hold sale_:id', 'write'].map(named);
    expect(waits?.map(parentOf)).toEqual(buyers);
    expect(holds?.map(parentOf)).toEqual(buyers);
    expect(writes?.map(parentOf)).toEqual(buyers.map(() => 'hold sale_:id'));
    expect(waits?.map(({ attributes }) => attributes['distributed_lock.hand_off'])).toEqual([
      false,
      ...buyers.slice(1).map(() => true),
    ]);
    const tokens = holds?.map(({ attributes }) => BigInt(String(attributes['distributed_lock.fencing_token'])));
    expect(tokens).toEqual(tokens?.toSorted((a, b) => Number(a - b)));
    for (const [place, hold] of holds?.entries() ?? []) {
      const [wait, write] = [waits?.[place], writes?.[place]];
      if (!wait || !write) throw new Error('a span is missing');
      const moments = [startOf(wait), startOf(hold), startOf(write), endOf(write), endOf(hold)];
      expect(moments).toEqual(moments.toSorted((a, b) => a - b));
      expect(moments).not.toContain(-1);
      expect(wait.attributes).toMatchObject({
        'distributed_lock.key': 'shop:sale_42',
        'distributed_lock.backend': 'memory',
        'distributed_lock.acquired': true,
      });
    }
  });

  it('last as long as the wait and the hold', async () => {
    await using locks = new LockService(memory(), { observers: [new LockSpans({ tracerProvider })] });
    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const first = locks.withLock('k', () => pause(60));
    const second = locks.withLock('k', () => pause(30));
    await Promise.all([first, second]);
    const [, waited] = named('acquire k');
    const [held, heldNext] = named('hold k');
    if (!waited || !held || !heldNext) throw new Error('a span is missing');
    expect(startOf(waited)).toBeLessThan(startOf(held));
    expect(endOf(waited)).toBeGreaterThan(endOf(held));
    expect(msOf(held.duration)).toBeGreaterThanOrEqual(55);
    expect(msOf(heldNext.duration)).toBeGreaterThanOrEqual(25);
  });

  it('of callers that share a lock are in the trace of each caller, and so is what each does under it', async () => {
    await using locks = new LockService(memory(), { observers: [new LockSpans({ tracerProvider })] });
    const readers = ['reader 0', 'reader 1', 'reader 2'];
    const leaveFunctions: (() => void)[] = [];
    const waitForAllReaders = (): Promise<void> =>
      new Promise((resolve) => {
        leaveFunctions.push(resolve);
        if (leaveFunctions.length === readers.length) for (const leave of leaveFunctions) leave();
      });
    const readUnderLock = (reader: string) =>
      locks.withLock('d', () => request(`read of ${reader}`, waitForAllReaders), { mode: 'shared' });
    await Promise.all(readers.map((reader) => request(reader, () => readUnderLock(reader))));
    expect(new Set(named('hold d').map(parentOf))).toEqual(new Set(readers));
    for (const reader of readers) {
      const [root, readSpan] = [...named(reader), ...named(`read of ${reader}`)];
      if (!root || !readSpan) throw new Error('a span is missing');
      expect(parentOf(readSpan)).toBe('hold d');
      expect(readSpan.spanContext().traceId).toBe(root.spanContext().traceId);
    }
  });

  it('of callers that share a lock end with each caller, and are errors only for those who lose it', async () => {
    const locks = new LockService(memory(), { observers: [new LockSpans({ tracerProvider })] });
    const options = { mode: 'shared', reentrant: true } as const;
    const [first, second] = await Promise.all([locks.acquire('d', options), locks.acquire('d', options)]);
    await second.run(() => locks.withLock('d', () => undefined, options));
    expect(named('hold d')).toEqual([]);
    await first.release();
    expect(named('hold d').map(({ status }) => status.code)).toEqual([SpanStatusCode.UNSET]);
    await locks.close();
    await second.release();
    expect(named('hold d').map(({ status }) => status.code)).toEqual([SpanStatusCode.UNSET, SpanStatusCode.ERROR]);
  });

  it('are errors with the reason where the wait was in vain and where the lock was lost, and re-entry has none', async () => {
    const locks = new LockService(memory(), { observers: [new LockSpans({ tracerProvider })] });
    const lock = await locks.acquire('k', { reentrant: true });
    await lock.run(() => locks.withLock('k', () => undefined, { reentrant: true }));
    await expect(locks.acquire('k', { waitMs: 1 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await expect(locks.tryAcquire('k')).resolves.toBeNull();
    await expect(locks.acquire('k', { signal: AbortSignal.abort(new TypeError('gone')) })).rejects.toThrow('gone');
    await locks.close();
    const wanted = { code: SpanStatusCode.ERROR };
    expect(named('acquire k').map(({ status, attributes }) => [status.code, attributes['error.type']])).toEqual([
      [SpanStatusCode.UNSET, undefined],
      [wanted.code, 'LOCK_TIMEOUT'],
      [SpanStatusCode.UNSET, undefined],
    ]);
    expect(named('hold k').map(({ status, attributes }) => [status, attributes['error.type']])).toEqual([
      [{ ...wanted, message: 'shutdown' }, 'LOCK_LOST'],
    ]);
  });
});
