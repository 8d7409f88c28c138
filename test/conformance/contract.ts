import {
  type LockBackend,
  LockService,
  type LockServiceOptions,
  systemClock,
  isFulfilledWithin,
} from 'nestjs-distributed-lock/core';
import type { Lease } from '../../lib/core/leasing/lease.js';
import type { BackendHarness } from './backend-harness.js';
import { contend, type ContendOptions, win } from '../support/contend.js';
import { atLeastMs, timeLimitOf } from '../support/machine.js';

/**
 * Tolerance for a timer and a few round trips, while any process stands still for 300 ms: a time limit that comes late is
 * given as much time again.
 */
export const SLACK_MS = atLeastMs(650);

/** TTL of a lease that must outlast a test, also where the process gets no processor for a while. */
export const LONG_TTL_MS = 20_000;

/** TTL of which a third, after which a lease is renewed, is longer than any test may take: no renewal explains what is told. */
export const UNRENEWED_TTL_MS = 600_000;

/** The time that a test has for its clean-up when its own time is up. */
export const CLEAN_UP_MS = timeLimitOf(15_000);
/** Longer than many callers take who come one after the other. */
export const PATIENT_MS = timeLimitOf(20_000);

/** The backend under test and what one test opened on it. */
export class Contract implements AsyncDisposable {
  static #keys = 0;
  readonly #opened: { close(): Promise<void> }[] = [];
  readonly #timeIsUp = new AbortController();
  /** Aborts when the test has taken too long: what it waits for has to end, so that its clean-up runs. */
  readonly timeIsUp: AbortSignal = this.#timeIsUp.signal;

  constructor(readonly harness: BackendHarness) {}

  /** For locks of other processes: signals and messages take their time. */
  get processTtlMs(): number {
    return processTtlOf(this.harness);
  }

  /** A client that ends with the test, started as an application starts it: where nothing answers yet, it goes on. */
  async backend(): Promise<LockBackend> {
    const backend = this.closing(await this.harness.connect());
    await backend.store.start?.().catch(() => undefined);
    return backend;
  }

  /** A lock service with a client of its own, started as an application starts it: stands for a process. Ends with the test. */
  async service(options: LockServiceOptions = {}): Promise<LockService> {
    const defaults = { ttlMs: this.harness.shortTtlMs, ...options.defaults };
    const service = this.closing(new LockService(await this.harness.connect(), { ...options, defaults }));
    await service.start();
    return service;
  }

  /** Ends with the test. */
  closing<T extends { close(): Promise<void> }>(opened: T): T {
    this.#opened.push(opened);
    return opened;
  }

  /** A key that no other test has. */
  key(): string {
    Contract.#keys += 1;
    return `contract-${Contract.#keys}`;
  }

  /** Does to a lease as a process that died: nothing, ever again. Resolves to `null` as the backend does. */
  contend(backend: LockBackend, key: string, options: ContendOptions = {}): Promise<Lease | null> {
    return contend(backend, key, { ttlMs: this.harness.shortTtlMs, ...options });
  }

  /** `contend` where the key must be free. */
  win(backend: LockBackend, key: string, options: ContendOptions = {}): Promise<Lease> {
    return win(backend, key, { ttlMs: this.harness.shortTtlMs, ...options });
  }

  /**
   * Runs the test. When its time is up, its processes and clients end, and it has some more for its own clean-up.
   * @throws the test's own failure, or one that names the limit
   */
  async run(check: (contract: Contract) => Promise<void>, limitMs: number): Promise<void> {
    const checking = check(this);
    if (await isFulfilledWithin(systemClock, limitMs, checking)) return;
    const error = new Error(`was not over after ${limitMs} ms`);
    this.#timeIsUp.abort(error);
    const cleanedUp = checking.catch((cause: unknown) => (error.cause = cause));
    await isFulfilledWithin(systemClock, CLEAN_UP_MS, Promise.all([this.endTest(), cleanedUp]));
    throw error;
  }

  async endTest(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((opened) => opened.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.endTest();
  }
}

export function processTtlOf({ shortTtlMs }: BackendHarness): number {
  return Math.max(500, shortTtlMs);
}

/** Something that happens once, and that others wait for. */
export class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}

/** Resolves once the signal aborts, to when that was by `performance.now()`. */
export function aborted(signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const onAbort = (): void => resolve(performance.now());
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** Asserts `check` again and again, for `ms`. */
export async function throughout(ms: number, check: () => unknown): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    await check();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Stalls the event loop, as a long computation or a garbage collection would. */
export function blockEventLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The error of a promise that should reject. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('resolved although it should have rejected');
}

/** One that must be awaited later: its rejection until then is nobody's concern. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
