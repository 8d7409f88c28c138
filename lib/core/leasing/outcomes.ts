import { randomUUID } from 'node:crypto';
import { isLockError } from '../contract/errors.js';
import { failureKindOf } from '../contract/failure-kind.js';
import type { BackendHealth, HealthSource } from '../contract/health.js';
import { ownMetadata } from '../contract/holder.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { errorText } from '../contract/error-text.js';
import { type Clock, pause } from '../time/timers.js';
import type { CleanUp, OwnedKey } from './owned-key.js';

/** Fewer failures in a row say little about a server. */
const MIN_FAILURES = 3;
/** Failures in a row that all concern one key have to go on for this long before they count against the server. */
const MIN_FAILING_MS = 2_000;
/** Outcomes that one count comprises. Health looks at the present count and the one before. */
const OUTCOMES_PER_COUNT = 50;
/** Fewer outcomes are no sample from which a share of failures could be told. */
const MIN_OUTCOMES = 20;
/** Share of failed outcomes above which health mentions them. */
const MAX_FAILED_SHARE = 0.1;
/** How long health mentions failures after the last of them. */
const MENTIONED_MS = 60_000;
/** Key that a probe takes for a moment. */
const PROBE_KEY = 'nestjs-distributed-lock:probe';
const PROBE_TTL_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

/**
 * Kinds of requests to a store. A server may refuse the last one only. One that is
 * out of memory still renews and releases, and one that refuses all writes still reads.
 */
const REQUESTS = ['read', 'keep', 'take'] as const;

export type StoreRequest = (typeof REQUESTS)[number];

/** Failures without a request between them that was carried out, and that says as much as they do. */
interface Streak {
  readonly since: number;
  readonly key: string;
  /** The one of them that asks most of a server. */
  request: StoreRequest;
  hasOtherKeys: boolean;
  failures: number;
}

interface Failure {
  readonly text: string;
  readonly at: number;
  readonly clock: Clock;
}

/**
 * The health of a backend as its callers see it. A store knows its connections; this counts how requests end. After
 * several failures in a row it takes and releases a key of its own, and reports `down` if that fails, too. It repeats
 * that probe until a request of anybody is carried out.
 */
export class Outcomes implements HealthSource {
  readonly #listeners = new Set<(health: BackendHealth) => void>();
  readonly #closed = new AbortController();
  #isAnswered = false;
  #isDown = false;
  #isProbing = false;
  #streak: Streak | undefined;
  #lastFailure: Failure | undefined;
  #counted = 0;
  #failed = 0;
  #failedBefore = 0;
  #hasCountBefore = false;

  constructor(
    private readonly store: LeaseStore,
    private readonly cleanUp: CleanUp,
  ) {
    store.health?.onChange((health) => this.#tell(this.#combine(health)));
  }

  get current(): BackendHealth {
    const { health } = this.store;
    return this.#combine(health?.current ?? { status: this.#isAnswered ? 'up' : 'idle' });
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Notes that the server carried a request out: granted, refused because of a holder, renewed or released. */
  noteCarriedOut(request: StoreRequest): void {
    this.#isAnswered = true;
    this.#count(0);
    if (this.#streak && greater(request, this.#streak.request) === request) this.#endStreak();
  }

  /**
   * Notes that a request failed. An error about one caller's value comes from a healthy
   * server, which may not have looked yet whether it can carry the request out.
   */
  noteFailure(error: unknown, request: StoreRequest, { key, clock }: Pick<OwnedKey, 'key' | 'clock'>): void {
    if (isAboutValue(error)) return this.noteCarriedOut('read');
    if (this.#closed.signal.aborted) return;
    const at = clock.now();
    this.#count(1);
    this.#lastFailure = { text: errorText(error), at, clock };
    const streak = (this.#streak ??= { since: at, key, request, hasOtherKeys: false, failures: 0 });
    streak.failures += 1;
    streak.request = greater(request, streak.request);
    streak.hasOtherKeys ||= key !== streak.key;
    const isLong = streak.hasOtherKeys || at - streak.since >= MIN_FAILING_MS;
    const isToldAlready = this.store.health?.current.status === 'down';
    if (streak.failures >= MIN_FAILURES && isLong && !isToldAlready && !this.#isProbing) void this.#probe(clock);
  }

  /** Ends the probes. Later failures change nothing. */
  close(): void {
    this.#closed.abort();
  }

  #count(failures: 0 | 1): void {
    this.#counted += 1;
    this.#failed += failures;
    if (this.#counted < OUTCOMES_PER_COUNT) return;
    this.#failedBefore = this.#failed;
    this.#hasCountBefore = true;
    this.#counted = this.#failed = 0;
  }

  #endStreak(): void {
    this.#streak = undefined;
    if (!this.#isDown) return;
    this.#isDown = false;
    this.#tell(this.current);
  }

  #tell(health: BackendHealth): void {
    for (const listener of this.#listeners) listener(health);
  }

  #combine(reported: BackendHealth): BackendHealth {
    if (reported.status === 'down') return reported;
    const status = this.#isDown ? 'down' : reported.status;
    const details = [this.#failureDetail(), reported.detail].filter((detail) => detail !== undefined);
    return { ...reported, status, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  #failureDetail(): string | undefined {
    if (!this.#lastFailure) return undefined;
    const { text, at, clock } = this.#lastFailure;
    if (this.#isDown) return text;
    const failed = this.#failed + this.#failedBefore;
    const all = this.#counted + (this.#hasCountBefore ? OUTCOMES_PER_COUNT : 0);
    const isMentioned = all >= MIN_OUTCOMES && failed > all * MAX_FAILED_SHARE && clock.now() - at <= MENTIONED_MS;
    return isMentioned ? `${failed} of the last ${all} requests failed: ${text}` : undefined;
  }

  /** Probes until a request, its own or a caller's, is carried out. */
  async #probe(clock: Clock): Promise<void> {
    this.#isProbing = true;
    for (let pauseMs = FIRST_PAUSE_MS; this.#streak; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      if (await this.#isCarriedOut(clock)) this.noteCarriedOut('take');
      if (!this.#streak || this.#closed.signal.aborted) break;
      this.#streak.request = 'take';
      if (!this.#isDown) {
        this.#isDown = true;
        this.#tell(this.current);
      }
      await pause(clock, pauseMs, { background: true, until: this.#closed.signal });
    }
    this.#isProbing = false;
  }

  /**
   * Takes and releases a key that no caller uses: a reading would not tell whether the server can write. A user whom the
   * server allows other keys only learns nothing by it.
   */
  async #isCarriedOut(clock: Clock): Promise<boolean> {
    const { store } = this;
    const owner = `probe-${randomUUID()}`;
    const ttlMs = Math.max(PROBE_TTL_MS, store.traits?.ttlLimits?.minMs ?? 0);
    try {
      await store.tryAcquire(PROBE_KEY, owner, ttlMs, ownMetadata('health probe'));
      await store.release(PROBE_KEY, owner);
      return true;
    } catch {
      this.cleanUp({ key: PROBE_KEY, owner, ttlMs, clock });
      return false;
    }
  }
}

/** Whether this caller alone was refused. What is wrong with an option of the store, such as its table, concerns all. */
function isAboutValue(error: unknown): boolean {
  if (isLockError(error, 'LOCK_CONFIGURATION')) return error.option === 'key';
  return failureKindOf(error) === 'value';
}

/** The one that asks more of a server. */
function greater(one: StoreRequest, other: StoreRequest): StoreRequest {
  return REQUESTS.indexOf(one) < REQUESTS.indexOf(other) ? other : one;
}
