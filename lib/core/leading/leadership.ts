import { isLockError, LockTimeoutError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import type { TermEnd } from '../events/lock-observer.js';
import { runOutsideLocks } from '../holding/call-tree.js';
import { currentLocks } from '../holding/lock-handle.js';
import { withKeepAlive } from '../kit/keep-alive.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { assertCanReadHolder, readHolder } from '../looking/readings.js';
import { pause } from '../time/timers.js';
import { isFulfilledWithin } from '../time/within.js';
import { Acquisition, type AcquisitionDependencies } from '../acquiring/acquisition.js';
import { KeyHeld } from '../acquiring/key-held.js';
import { LeaderChanges } from './leader-changes.js';
import type { LeaderWork } from './lead-options.js';
import { TermPauses } from './term-pauses.js';
import { Term } from './term.js';

export interface LeadershipSettings {
  readonly fullKey: string;
  readonly work: LeaderWork;
  readonly options: Readonly<ResolvedOptions>;
  readonly graceMs: number;
}

/**
 * Candidacy of this process for a leadership, from `LockService.lead`. One process leads at a time. The candidacy
 * lasts, over any number of terms, until `close()` or the end of the service.
 */
export class Leadership implements AsyncDisposable {
  /** @internal Resolves when the candidacy and its work have ended. */
  readonly endPromise: Promise<void>;
  readonly #closeController = new AbortController();
  readonly #changes: LeaderChanges;
  readonly #pauses: TermPauses;
  #term: Term | undefined;
  #termEndPromise: Promise<unknown> = Promise.resolve();
  #endedInTimePromise: Promise<boolean> | undefined;

  /** @internal */
  constructor(
    /** Key without the namespace. */
    readonly key: string,
    private readonly dependencies: AcquisitionDependencies,
    private readonly settings: LeadershipSettings,
  ) {
    const { options } = settings;
    this.#pauses = new TermPauses(options.ttlMs);
    this.#changes = new LeaderChanges(dependencies.service.clock, options.ttlMs, () => this.#readLeader());
    this.endPromise = runOutsideLocks(() => this.#runCandidacy());
  }

  /**
   * Whether this process leads at this moment, as exact as `LockHandle.isHeld`. `false` as soon as the signal of the
   * work aborts, although no other process leads before the work has ended.
   */
  get isLeader(): boolean {
    return this.#term?.isLeading === true;
  }

  /**
   * Resolves to the leader, or to `undefined` if no process leads. Reads the backend once, or not at all if this
   * process leads.
   * @throws LockConfigurationError the backend cannot tell; LockBackendError the backend does not answer
   */
  async leader(): Promise<Holder | undefined> {
    return withKeepAlive(async () => this.#readLeader());
  }

  /**
   * Yields the present leader, and each new one, or `undefined` while none is known. A change in this process is
   * yielded at once. Any other change is found by a reading every third of the TTL. A slow reader misses some changes,
   * but never the last. The stream ends with the signal, the reader's `break`, or the candidacy.
   * @throws LockConfigurationError the backend cannot tell
   */
  changes({ signal }: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<Holder | undefined> {
    assertCanReadHolder(this.dependencies.service, this.settings.fullKey);
    return this.#changes.createStream(signal);
  }

  /**
   * Ends the term, and becomes a candidate again, behind the others. Aborts the signal of the work, and resolves when
   * the work has ended and the key is released. Resolves at once if the work itself calls this. Does nothing where
   * another process leads.
   */
  async resign(): Promise<void> {
    // An observer of `termBegan` may call this before `#termEndPromise` is set for the new term.
    const termEndPromise = Promise.resolve().then(() => this.#termEndPromise);
    await withKeepAlive(() => this.#endTerm('resigned', termEndPromise));
  }

  /**
   * Ends the candidacy: aborts the signal of the work, and resolves when the work has ended and the key is released, or
   * after `graceMs`. Work that takes longer keeps the key. Resolves at once if the work itself calls this. Idempotent.
   */
  async close(): Promise<void> {
    await withKeepAlive(() => this.endCandidacy('resigned'));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal Ends the candidacy, and resolves to whether the work ended in time. */
  endCandidacy(reason: 'resigned' | 'shutdown'): Promise<boolean> {
    this.#closeController.abort();
    const { graceMs } = this.settings;
    // Streams of changes end after the grace time, even if the work goes on.
    this.#endedInTimePromise ??= isFulfilledWithin(this.dependencies.service.clock, graceMs, this.endPromise).finally(
      () => this.#changes.end(),
    );
    return this.#endTerm(reason, this.#endedInTimePromise).then((endedInTime) => endedInTime === true);
  }

  /** @internal Whether this process has the key, even after the signal of the work has aborted. */
  get hasLock(): boolean {
    return this.#term?.isHeld === true;
  }

  /** Aborts the work's signal. Waits for `termEndPromise`, unless the work calls this: it would wait for itself. */
  async #endTerm<T>(reason: 'resigned' | 'shutdown', termEndPromise: Promise<T>): Promise<T | undefined> {
    const term = this.#term;
    term?.end(reason);
    return term && currentLocks().includes(term) ? undefined : termEndPromise;
  }

  async #runCandidacy(): Promise<void> {
    const { clock } = this.dependencies.service;
    const { signal } = this.#closeController;
    while (!signal.aborted) {
      const pauseMs = await this.#runOneTerm();
      if (pauseMs > 0) await pause(clock, pauseMs, { signal });
    }
    this.dependencies.turns.consumeYieldMark(this.settings.fullKey);
    this.#changes.end();
  }

  /** Resolves to the milliseconds to pause before the next candidacy. */
  async #runOneTerm(): Promise<number> {
    let term: Term;
    try {
      term = await this.#waitForElection();
    } catch (error) {
      if (isLockError(error, 'LOCK_SHUTDOWN')) this.#closeController.abort();
      return this.#pauses.pauseMsAfterOutage();
    }
    if (this.#closeController.signal.aborted) return term.release().then(() => 0);
    const pauseMsPromise = this.#serveTerm(term);
    this.#termEndPromise = pauseMsPromise;
    return pauseMsPromise;
  }

  async #waitForElection(): Promise<Term> {
    const { fullKey, options } = this.settings;
    const acquireOptions = { ...options, signal: this.#closeController.signal };
    const result = await new Acquisition(fullKey, acquireOptions, this.dependencies).run();
    if (result instanceof KeyHeld) {
      const { holder, message } = result;
      throw new LockTimeoutError(this.settings.fullKey, { waitMs: options.waitMs, holder, message });
    }
    return new Term(this.key, result, this.dependencies.holds.release);
  }

  async #serveTerm(term: Term): Promise<number> {
    const { fullKey: key } = this.settings;
    const { clock, observers } = this.dependencies.service;
    const { fencingToken } = term;
    const beganAt = clock.now();
    this.#term = term;
    this.#changes.noteChange();
    observers.notify('termBegan', () => ({ key, fencingToken }));
    const { reason, error } = await this.#runWork(term);
    this.#term = undefined;
    await term.release();
    const ledMs = clock.now() - beganAt;
    // Lets candidates of other processes ask first, in a store without a queue.
    if (!this.#closeController.signal.aborted) this.dependencies.turns.markToYield(key);
    this.#changes.noteChange();
    const errorProperty = error === undefined ? {} : { error };
    observers.notify('termEnded', () => ({ key, fencingToken, ledMs, reason, ...errorProperty }));
    return reason === 'failed' ? this.#pauses.pauseMsAfterFailure(ledMs) : this.#pauses.pauseMsAfterTerm(ledMs);
  }

  /** Never rejects. */
  async #runWork(term: Term): Promise<{ readonly reason: TermEnd; readonly error?: unknown }> {
    let errorProperty: { readonly error?: unknown } = {};
    try {
      await term.run(() => this.settings.work(term));
      if (term.needsCompletion && term.isHeld) await term.complete();
    } catch (error) {
      errorProperty = isCausedByAbort(error, term.signal) ? {} : { error };
    }
    const { aborted, reason } = term.signal;
    if (aborted && isLockError(reason, 'LOCK_LOST')) return { reason: reason.reason, ...errorProperty };
    return { reason: 'error' in errorProperty ? 'failed' : 'returned', ...errorProperty };
  }

  #readLeader(): Promise<Holder | undefined> | Holder {
    const { service } = this.dependencies;
    return this.isLeader ? service.metadata : readHolder(service, this.settings.fullKey);
  }
}

function isCausedByAbort(error: unknown, { aborted, reason }: AbortSignal): boolean {
  if (!aborted) return false;
  // Under jest an error of Node's own modules is from another realm, so that `instanceof Error` is false.
  const { name }: { readonly name?: unknown } = Object(error);
  return error === reason || isLockError(error, 'LOCK_LOST') || name === 'AbortError';
}
