import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  type AcquireOptions,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  LockService,
  pause,
  systemClock,
  within,
} from '../core/index.js';
import type { LeaseStoreHarness } from './harness.js';

/** By name, the promises of one theme. */
export type Theme = Readonly<Record<string, (trial: Trial) => Promise<void>>>;

/** How long to wait for what has to happen sooner or later. */
export const PATIENCE_MS = 10_000;
/** Longer than any check: the holder stays. */
export const LONG_TTL_MS = 30_000;

const POLL_MS = 5;
const SOMEBODY: HolderMetadata = { host: 'somewhere', pid: process.pid, label: 'conformance' };

export interface Question {
  /** @default one that was never used */
  readonly owner?: string;
  /** Within the store's limits. @default `shortTtlMs` */
  readonly ttlMs?: number;
  readonly metadata?: HolderMetadata;
}

export interface Answer {
  readonly store: LeaseStore;
  readonly key: string;
  readonly owner: string;
  readonly attempt: LeaseAttempt;
  /** By `performance.now()`. */
  readonly sentAt: number;
  readonly answeredAt: number;
}

export interface Won extends Answer {
  readonly token: bigint;
  readonly ttlMs: number;
}

/** One check: the clients that it opens, and the questions that it asks. */
export class Trial {
  readonly #opened: { close(): Promise<void> }[] = [];
  readonly #granted: Answer[] = [];
  #names = 0;

  private constructor(readonly harness: LeaseStoreHarness) {}

  static async run(harness: LeaseStoreHarness, keep: (trial: Trial) => Promise<void>): Promise<void> {
    const trial = new Trial(harness);
    try {
      await keep(trial);
    } finally {
      await trial.#end();
    }
  }

  async store(): Promise<LeaseStore> {
    const store = await this.harness.connect();
    this.#opened.push(store);
    await store.start?.();
    return store;
  }

  async two(): Promise<[LeaseStore, LeaseStore]> {
    return [await this.store(), await this.store()];
  }

  /** A key, and two who want it. */
  async scene(): Promise<{ readonly ours: LeaseStore; readonly theirs: LeaseStore; readonly key: string }> {
    return { ours: await this.store(), theirs: await this.store(), key: this.key() };
  }

  /** With a client of its own, as another process has. */
  async service(defaults: AcquireOptions = {}): Promise<LockService> {
    const options = { defaults: { ttlMs: this.harness.shortTtlMs, waitMs: PATIENCE_MS, ...defaults } };
    const service = new LockService(await this.harness.connect(), options);
    this.#opened.push(service);
    await service.start();
    return service;
  }

  /** A text that no other check has. */
  key(): string {
    return `conformance-${randomBytes(9).toString('base64url')}`;
  }

  /** An owner in the form that the core gives them. */
  owner(): string {
    this.#names += 1;
    return `${randomBytes(16).toString('base64url')}.${this.#names.toString(36)}`;
  }

  async ask(store: LeaseStore, key: string, question: Question = {}): Promise<Answer & { readonly ttlMs: number }> {
    const { owner = this.owner(), metadata = SOMEBODY } = question;
    const ttlMs = withinLimits(store, question.ttlMs ?? this.harness.shortTtlMs);
    const sentAt = performance.now();
    const attempt = await store.tryAcquire(key, owner, ttlMs, metadata);
    const answer = { store, key, owner, attempt, sentAt, answeredAt: performance.now(), ttlMs };
    if (attempt.acquired) this.#granted.push(answer);
    return answer;
  }

  /** Where the key has to be free. */
  async win(store: LeaseStore, key: string, question?: Question): Promise<Won> {
    const won = wonBy(await this.ask(store, key, question));
    assert.ok(won, `${JSON.stringify(key)} was refused although nobody had it`);
    return won;
  }

  /** Where it has to become free. */
  async winSoon(store: LeaseStore, key: string, question?: Question): Promise<Won> {
    const { owner = this.owner() } = question ?? {};
    return soon(`${JSON.stringify(key)} did not become free`, async () =>
      wonBy(await this.ask(store, key, { ...question, owner })),
    );
  }

  /** Where somebody else has it. */
  async lose(store: LeaseStore, key: string, question?: Question): Promise<void> {
    const { attempt } = await this.ask(store, key, question);
    assert.ok(!attempt.acquired, `${JSON.stringify(key)} was granted to a second owner`);
  }

  /** A second release is in vain, and so is one through a client that is closed. */
  async #end(): Promise<void> {
    await Promise.allSettled(this.#granted.map(({ store, key, owner }) => store.release(key, owner)));
    await Promise.all(this.#opened.map((opened) => opened.close()));
  }
}

export function wonBy({ ttlMs, ...answer }: Answer & { readonly ttlMs: number }): Won | undefined {
  const { attempt } = answer;
  if (!attempt.acquired) return undefined;
  return { ...answer, token: attempt.fencingToken, ttlMs: attempt.ttlMs ?? ttlMs };
}

/** Asks `look` again until it finds something, and returns that. */
export async function soon<T>(failure: string, look: () => Promise<T | undefined>): Promise<T> {
  const abandonAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    assert.ok(performance.now() < abandonAt, `${failure} within ${PATIENCE_MS} ms`);
    await pause(systemClock, POLL_MS);
  }
}

/** Checks again and again, until `end` by `performance.now()`. */
export async function throughout(end: number, check: () => Promise<void>): Promise<void> {
  while (performance.now() < end) {
    await check();
    await pause(systemClock, POLL_MS);
  }
}

/** Rejects when `promise` does, or does not settle in time. */
export async function inTime(failure: string, promise: Promise<unknown>, withinMs = PATIENCE_MS): Promise<void> {
  assert.ok(await within(systemClock, withinMs, promise), `${failure} within ${withinMs} ms`);
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function withinLimits({ traits }: LeaseStore, ttlMs: number): number {
  const ttlLimits = traits?.ttlLimits;
  return ttlLimits ? Math.min(Math.max(ttlMs, ttlLimits.minMs), ttlLimits.maxMs) : ttlMs;
}
