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
  isFulfilledWithin,
} from '../core/index.js';
import type { LeaseStoreHarness } from './harness.js';

export type CheckGroup = Readonly<Record<string, (context: CheckContext) => Promise<void>>>;

export const MAX_WAIT_MS = 10_000;
/** TTL that outlasts any check. */
export const LONG_TTL_MS = 30_000;

const POLL_MS = 5;
const HOLDER_METADATA: HolderMetadata = { host: 'somewhere', pid: process.pid, label: 'conformance' };

export interface LeaseRequest {
  readonly owner?: string;
  readonly ttlMs?: number;
  readonly metadata?: HolderMetadata;
}

export interface AttemptRecord {
  readonly store: LeaseStore;
  readonly key: string;
  readonly owner: string;
  readonly attempt: LeaseAttempt;
  readonly sentAt: number;
  readonly answeredAt: number;
}

export interface Grant extends AttemptRecord {
  readonly token: bigint;
  readonly ttlMs: number;
}

export class CheckContext {
  readonly #openClients: { close(): Promise<void> }[] = [];
  readonly #grantedAttempts: AttemptRecord[] = [];
  #ownerCount = 0;

  private constructor(readonly harness: LeaseStoreHarness) {}

  static async run(harness: LeaseStoreHarness, check: (context: CheckContext) => Promise<void>): Promise<void> {
    const context = new CheckContext(harness);
    try {
      await check(context);
    } finally {
      await context.#releaseAndClose();
    }
  }

  async openStore(): Promise<LeaseStore> {
    const store = await this.harness.connect();
    this.#openClients.push(store);
    await store.start?.();
    return store;
  }

  async openTwoStores(): Promise<[LeaseStore, LeaseStore]> {
    return [await this.openStore(), await this.openStore()];
  }

  async openTwoStoresAndKey(): Promise<{
    readonly store: LeaseStore;
    readonly otherStore: LeaseStore;
    readonly key: string;
  }> {
    return { store: await this.openStore(), otherStore: await this.openStore(), key: this.newKey() };
  }

  async openService(defaults: AcquireOptions = {}): Promise<LockService> {
    const options = { defaults: { ttlMs: this.harness.shortTtlMs, waitMs: MAX_WAIT_MS, ...defaults } };
    const service = new LockService(await this.harness.connect(), options);
    this.#openClients.push(service);
    await service.start();
    return service;
  }

  newKey(): string {
    return `conformance-${randomBytes(9).toString('base64url')}`;
  }

  /** Returns a new owner in the form that the core uses. */
  newOwner(): string {
    this.#ownerCount += 1;
    return `${randomBytes(16).toString('base64url')}.${this.#ownerCount.toString(36)}`;
  }

  async tryAcquire(
    store: LeaseStore,
    key: string,
    request: LeaseRequest = {},
  ): Promise<AttemptRecord & { readonly ttlMs: number }> {
    const { owner = this.newOwner(), metadata = HOLDER_METADATA } = request;
    const ttlMs = clampTtl(store, request.ttlMs ?? this.harness.shortTtlMs);
    const sentAt = performance.now();
    const attempt = await store.tryAcquire(key, owner, ttlMs, metadata);
    const answer = { store, key, owner, attempt, sentAt, answeredAt: performance.now(), ttlMs };
    if (attempt.acquired) this.#grantedAttempts.push(answer);
    return answer;
  }

  async acquire(store: LeaseStore, key: string, request?: LeaseRequest): Promise<Grant> {
    const grant = toGrant(await this.tryAcquire(store, key, request));
    assert.ok(grant, `${JSON.stringify(key)} was refused although nobody had it`);
    return grant;
  }

  async acquireEventually(store: LeaseStore, key: string, request?: LeaseRequest): Promise<Grant> {
    const { owner = this.newOwner() } = request ?? {};
    return waitForValue(`${JSON.stringify(key)} did not become free`, async () =>
      toGrant(await this.tryAcquire(store, key, { ...request, owner })),
    );
  }

  async assertRefused(store: LeaseStore, key: string, request?: LeaseRequest): Promise<void> {
    const { attempt } = await this.tryAcquire(store, key, request);
    assert.ok(!attempt.acquired, `${JSON.stringify(key)} was granted to a second owner`);
  }

  /** Ignores failed releases, because a check may have closed the store from which it acquired a key. */
  async #releaseAndClose(): Promise<void> {
    await Promise.allSettled(this.#grantedAttempts.map(({ store, key, owner }) => store.release(key, owner)));
    await Promise.all(this.#openClients.map((client) => client.close()));
  }
}

export function toGrant({ ttlMs, ...answer }: AttemptRecord & { readonly ttlMs: number }): Grant | undefined {
  const { attempt } = answer;
  if (!attempt.acquired) return undefined;
  return { ...answer, token: attempt.fencingToken, ttlMs: attempt.ttlMs ?? ttlMs };
}

export async function waitForValue<T>(failureMessage: string, read: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + MAX_WAIT_MS;
  for (;;) {
    const value = await read();
    if (value !== undefined) return value;
    assert.ok(performance.now() < deadline, `${failureMessage} within ${MAX_WAIT_MS} ms`);
    await pause(systemClock, POLL_MS);
  }
}

export async function repeatUntil(deadline: number, check: () => Promise<void>): Promise<void> {
  while (performance.now() < deadline) {
    await check();
    await pause(systemClock, POLL_MS);
  }
}

export async function assertSettlesInTime(
  failureMessage: string,
  promise: Promise<unknown>,
  withinMs = MAX_WAIT_MS,
): Promise<void> {
  assert.ok(await isFulfilledWithin(systemClock, withinMs, promise), `${failureMessage} within ${withinMs} ms`);
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function clampTtl({ traits }: LeaseStore, ttlMs: number): number {
  const ttlLimits = traits?.ttlLimits;
  return ttlLimits ? Math.min(Math.max(ttlMs, ttlLimits.minMs), ttlLimits.maxMs) : ttlMs;
}
