import { jest } from '@jest/globals';
import { PassThrough } from 'node:stream';
import type { InspectedEvent } from '../../lib/inspector/inspector-state.js';
import { streamTroubles } from '../../lib/inspector/trouble-stream.js';

const TROUBLE: InspectedEvent = { type: 'lost', at: '2026-01-01T00:00:00.000Z', backend: 'default', times: 1 };

/** Stands for the inspector: tells of a trouble, and ends the stream, when a test says so. */
class Inspector {
  readonly #listeners = new Set<(trouble: InspectedEvent) => void>();
  endStream = (): void => undefined;

  followTroubles(listener: (trouble: InspectedEvent) => void, endStream: () => void): () => void {
    this.#listeners.add(listener);
    this.endStream = endStream;
    return () => this.#listeners.delete(listener);
  }

  tell(): void {
    for (const listener of this.#listeners) listener(TROUBLE);
  }
}

function open() {
  const inspector = new Inspector();
  const response = new PassThrough();
  const errors: unknown[] = [];
  response.on('error', (error) => errors.push(error));
  const listenerCount = response.listenerCount('error');
  streamTroubles(inspector, response);
  const read = (): string => String(response.read() ?? '');
  read();
  return { inspector, response, errors, read, addedListeners: response.listenerCount('error') - listenerCount };
}

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] }));
afterEach(() => void jest.useRealTimers());

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

it('tells of trouble', () => {
  const { inspector, read } = open();
  inspector.tell();
  expect(read()).toBe(`data: ${JSON.stringify(TROUBLE)}\n\n`);
});

it('writes nothing after its end, and survives a broken connection', async () => {
  const { inspector, response, errors, addedListeners } = open();
  inspector.endStream();
  inspector.tell();
  await settle();
  expect(errors).toEqual([]);
  expect(addedListeners).toBe(1);
  expect(response.writableEnded).toBe(true);
});

it('writes a comment before a proxy takes the silence for an end, until the stream ends', () => {
  const { inspector, read } = open();
  jest.advanceTimersByTime(55_000);
  expect(read()).toBe(':\n\n:\n\n');
  inspector.endStream();
  expect(jest.getTimerCount()).toBe(0);
});

it('keeps no timer for a client that has gone', async () => {
  const { response } = open();
  expect(jest.getTimerCount()).toBe(1);
  response.destroy();
  await settle();
  expect(jest.getTimerCount()).toBe(0);
});

it('follows nothing for a client that went away while a guard decided', () => {
  const response = new PassThrough();
  response.destroy();
  streamTroubles(new Inspector(), response);
  expect(jest.getTimerCount()).toBe(0);
});
