import { randomUUID } from 'node:crypto';
import { isLockError } from '../contract/errors.js';
import { failureKindOf } from '../contract/failure-kind.js';
import type { BackendHealth, HealthSource } from '../contract/health.js';
import { HealthListeners } from '../contract/health-listeners.js';
import { ownMetadata } from '../contract/holder.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { runWithoutContext } from '../time/without-context.js';
import { type Clock, pause } from '../time/timers.js';
import type { ReleaseInBackground, OwnedKey } from './owned-key.js';
import { RecentOutcomes } from './recent-outcomes.js';

const MIN_FAILURES_TO_PROBE = 3;
/** Time that failures of one key must last before a probe, because the key may be the cause. */
const MIN_FAILING_MS = 2_000;
const PROBE_KEY = 'nestjs-distributed-lock:probe';
const PROBE_TTL_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

/**
 * Kinds of requests, the least demanding first. A server that refuses one kind may still carry out the kinds before it.
 * A server without free memory still renews, and a read-only server still reads.
 */
const REQUEST_KINDS_BY_DEMAND = ['read', 'renewOrRelease', 'acquire'] as const;

export type StoreRequestKind = (typeof REQUEST_KINDS_BY_DEMAND)[number];

/** Failures in a row, until the server carries out a request at least as demanding as `mostDemandingRequest`. */
interface FailureStreak {
  readonly since: number;
  readonly firstKey: string;
  readonly clock: Clock;
  mostDemandingRequest: StoreRequestKind;
  haveOtherKeysFailed: boolean;
  failureCount: number;
  /** Whether the latest failure came from a server that is no longer the right one, such as a former primary. */
  wasAnsweredElsewhere: boolean;
}

/**
 * Health of a backend, from the store's own health and from the outcomes of requests. After several failures a probe
 * takes and releases a key of its own. If that fails, too, `down` is reported until a probe or a caller's request
 * succeeds.
 */
export class ObservedHealth implements HealthSource {
  readonly #listeners = new HealthListeners();
  readonly #closeController = new AbortController();
  readonly #outcomes = new RecentOutcomes();
  #hasAnswered = false;
  #isDown = false;
  #isProbing = false;
  #streak: FailureStreak | undefined;

  constructor(
    private readonly store: LeaseStore,
    private readonly releaseInBackground: ReleaseInBackground,
  ) {
    store.health?.onChange((health) => {
      if (health.status === 'down') this.#onStoreDown();
      this.#listeners.notify(this.#addOwnFindings(health));
    });
  }

  get current(): BackendHealth {
    const { health } = this.store;
    return this.#addOwnFindings(health?.current ?? { status: this.#hasAnswered ? 'up' : 'idle' });
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Notes that the server carried out a request, or refused the request because of a holder. */
  noteCarriedOut(kind: StoreRequestKind): void {
    this.#hasAnswered = true;
    this.#outcomes.countSuccess();
    if (this.#streak && mostDemandingOf(kind, this.#streak.mostDemandingRequest) === kind) this.#endStreak();
  }

  /** Notes a failed request. Counts an error about the caller's own value as an answered reading instead. */
  noteFailure(error: unknown, kind: StoreRequestKind, { key, clock }: Pick<OwnedKey, 'key' | 'clock'>): void {
    if (isCallersOwnError(error)) return this.noteCarriedOut('read');
    if (this.#closeController.signal.aborted) return;
    this.#outcomes.countFailure(error, clock);
    const streak = (this.#streak ??= createStreak(kind, key, clock));
    streak.failureCount += 1;
    streak.wasAnsweredElsewhere = failureKindOf(error) === 'elsewhere';
    streak.mostDemandingRequest = mostDemandingOf(kind, streak.mostDemandingRequest);
    streak.haveOtherKeysFailed ||= key !== streak.firstKey;
    const isServerSuspected = streak.haveOtherKeysFailed || clock.now() - streak.since >= MIN_FAILING_MS;
    const isReportedDown = this.store.health?.current.status === 'down';
    if (streak.failureCount >= MIN_FAILURES_TO_PROBE && isServerSuspected && !isReportedDown && !this.#isProbing)
      this.#startProbe(clock);
  }

  /** Notes that the store could not start. Reports `down` until the server carries out an acquisition. */
  noteFailedStart(error: unknown, clock: Clock): void {
    if (this.#closeController.signal.aborted) return;
    this.#outcomes.countFailure(error, clock);
    const streak = (this.#streak ??= createStreak('acquire', PROBE_KEY, clock));
    streak.mostDemandingRequest = 'acquire';
    streak.failureCount += MIN_FAILURES_TO_PROBE;
    // A store that reports `down` itself also finds out when its server is back.
    if (this.#isDown || this.store.health?.current.status === 'down') return;
    this.#isDown = true;
    this.#listeners.notify(this.current);
    if (!this.#isProbing) this.#startProbe(clock);
  }

  close(): void {
    this.#closeController.abort();
  }

  /**
   * Keeps the status `down` until a request succeeds, because a new connection alone does not refute recent failures.
   * The connection may lead to the same former primary. A cluster reports `down` and then `up` at once when one node
   * fails.
   */
  #onStoreDown(): void {
    const streak = this.#streak;
    const isStoreDown = this.store.health?.current.status === 'down';
    if (!streak || !isStoreDown) return;
    const isFailureRecent = streak.clock.now() - (this.#outcomes.lastFailure?.at ?? 0) < MIN_FAILING_MS;
    if (!this.#isProbing && !(streak.wasAnsweredElsewhere && isFailureRecent)) return;
    this.#isDown = true;
    if (!this.#isProbing) this.#startProbe(streak.clock);
  }

  #endStreak(): void {
    this.#streak = undefined;
    if (!this.#isDown) return;
    this.#isDown = false;
    this.#listeners.notify(this.current);
  }

  #addOwnFindings(storeHealth: BackendHealth): BackendHealth {
    if (storeHealth.status === 'down') return storeHealth;
    const status = this.#isDown ? 'down' : storeHealth.status;
    const failures = this.#isDown ? this.#outcomes.lastFailure?.text : this.#outcomes.describeFailures();
    const details = [failures, storeHealth.detail].filter((detail) => detail !== undefined);
    return { ...storeHealth, status, ...(details.length > 0 ? { detail: details.join('; ') } : {}) };
  }

  /** Starts the probe outside of the locks of the caller whose request has failed. */
  #startProbe(clock: Clock): void {
    void runWithoutContext(() => this.#probe(clock));
  }

  async #probe(clock: Clock): Promise<void> {
    const { signal } = this.#closeController;
    const probedStreak = this.#streak;
    this.#isProbing = true;
    // A store that has just reported a lost connection may be about to fail all requests on that connection.
    await Promise.resolve();
    for (let pauseMs = FIRST_PAUSE_MS; this.#streak && !signal.aborted; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      const probeResult = await this.#tryProbe(clock);
      if (probeResult === 'carried out') this.noteCarriedOut('acquire');
      if (!this.#streak || signal.aborted) break;
      if (probeResult === 'refused') this.#streak.mostDemandingRequest = 'acquire';
      // A probe whose own key is refused proves nothing, and a few failures may concern their own keys only.
      if (probeResult === 'own key refused' && this.#streak.failureCount < MIN_FAILURES_TO_PROBE) {
        this.#endStreak();
        break;
      }
      if (!this.#isDown) {
        // A streak that began during this probe needs a probe of its own.
        if (this.#streak !== probedStreak) break;
        this.#isDown = true;
        this.#listeners.notify(this.current);
      }
      await pause(clock, pauseMs, { background: true, signal });
    }
    this.#isProbing = false;
  }

  /**
   * Takes and releases a key, because a reading would not show whether the server can write. `own key refused`: the
   * error concerns the probe's key only, and says nothing about other keys.
   */
  async #tryProbe(clock: Clock): Promise<'carried out' | 'refused' | 'own key refused' | 'silent'> {
    const { store } = this;
    const owner = `probe-${randomUUID()}`;
    const ttlMs = Math.max(PROBE_TTL_MS, store.traits?.ttlLimits?.minMs ?? 0);
    try {
      await store.tryAcquire(PROBE_KEY, owner, ttlMs, ownMetadata('health probe'));
      await store.release(PROBE_KEY, owner);
      return 'carried out';
    } catch (error) {
      this.releaseInBackground({ key: PROBE_KEY, owner, ttlMs, clock });
      if (isCallersOwnError(error)) return 'own key refused';
      return failureKindOf(error) === 'silent' ? 'silent' : 'refused';
    }
  }
}

function createStreak(kind: StoreRequestKind, firstKey: string, clock: Clock): FailureStreak {
  return {
    since: clock.now(),
    firstKey,
    clock,
    mostDemandingRequest: kind,
    haveOtherKeysFailed: false,
    failureCount: 0,
    wasAnsweredElsewhere: false,
  };
}

/** Returns whether an error concerns one caller's key or value only. A missing table concerns all requests. */
function isCallersOwnError(error: unknown): boolean {
  if (isLockError(error, 'LOCK_CONFIGURATION')) return error.option === 'key';
  return failureKindOf(error) === 'value';
}

function mostDemandingOf(one: StoreRequestKind, other: StoreRequestKind): StoreRequestKind {
  return REQUEST_KINDS_BY_DEMAND.indexOf(one) < REQUEST_KINDS_BY_DEMAND.indexOf(other) ? other : one;
}
