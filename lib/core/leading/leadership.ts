import { isLockError, LockTimeoutError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import type { TermEnd } from '../events/lock-observer.js';
import { runOutsideLocks } from '../holding/call-tree.js';
import { currentLocks } from '../holding/lock-handle.js';
import { whileAwaited } from '../kit/awaited-promises.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { assertCanLook, currentHolder } from '../looking/readings.js';
import { pause } from '../time/timers.js';
import { settlesWithin } from '../time/within.js';
import { Acquisition, type AcquisitionParts } from '../acquiring/acquisition.js';
import { KeyHeld } from '../acquiring/key-held.js';
import { Changes } from './changes.js';
import type { LeaderWork } from './lead-options.js';
import { Pauses } from './pauses.js';
import { Term } from './term.js';

export interface LeadershipSettings {
  /** Key with the namespace. */
  readonly fullKey: string;
  readonly work: LeaderWork;
  readonly options: Readonly<ResolvedOptions>;
  readonly graceMs: number;
}

/**
 * Candidacy for a leadership that one process has at a time. `LockService.lead` makes one. It lasts, over any number of
 * terms, until `close()` or the end of the service.
 */
export class Leadership implements AsyncDisposable {
  /** @internal Resolves when the candidacy is over, and its work has ended. */
  readonly over: Promise<void>;
  readonly #closed = new AbortController();
  readonly #changes: Changes;
  readonly #pauses: Pauses;
  #term: Term | undefined;
  #termOver: Promise<unknown> = Promise.resolve();
  #left: Promise<boolean> | undefined;

  /** @internal */
  constructor(
    /** Key without the namespace. */
    readonly key: string,
    private readonly parts: AcquisitionParts,
    private readonly settings: LeadershipSettings,
  ) {
    const { options } = settings;
    this.#pauses = new Pauses(options.ttlMs);
    this.#changes = new Changes(parts.service.clock, options.ttlMs, () => this.#look());
    this.over = runOutsideLocks(() => this.#stand());
  }

  /**
   * Whether this process leads. Exact now, as `LockHandle.isHeld` is. `false` as soon as the work is told to end, though
   * nobody else leads before it has ended.
   */
  get isLeader(): boolean {
    return this.#term?.isLeading === true;
  }

  /**
   * Resolves to the leader, by one reading of the backend, or by none where it is this process. `undefined`: there is none.
   * @throws LockConfigurationError the backend cannot tell; LockBackendError it does not answer
   */
  async leader(): Promise<Holder | undefined> {
    return whileAwaited(async () => this.#look());
  }

  /**
   * Yields the leader now and whenever it changes; `undefined`: none is known. Changes in this process come at once, others
   * by a reading every third of the TTL. A slow reader misses some, but never the last. Ends with the signal, the reader's
   * `break`, or the candidacy.
   * @throws LockConfigurationError the backend cannot tell
   */
  changes({ signal }: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<Holder | undefined> {
    assertCanLook(this.parts.service, this.settings.fullKey);
    return this.#changes.stream(signal);
  }

  /**
   * Resigns and stands again behind the other candidates: tells the work to end, and resolves when it has and the key is
   * released. Called by the work itself it resolves at once. Does nothing where another process leads.
   */
  async resign(): Promise<void> {
    // An observer of the beginning may call this when the term is not under way yet.
    const over = Promise.resolve().then(() => this.#termOver);
    await whileAwaited(() => this.#endTerm('resigned', over));
  }

  /**
   * Ends the candidacy. Tells the work to end, and resolves when it has and the key is released, or after `graceMs`. Work
   * that goes on keeps the key. Called by the work itself it resolves at once. Idempotent.
   */
  async close(): Promise<void> {
    await whileAwaited(() => this.leave('resigned'));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal Ends the candidacy, and resolves to whether the work ended in time. */
  leave(reason: 'resigned' | 'shutdown'): Promise<boolean> {
    this.#closed.abort();
    const { graceMs } = this.settings;
    // Readers of changes need not wait for work that goes on.
    this.#left ??= settlesWithin(this.parts.service.clock, graceMs, this.over).finally(() => this.#changes.end());
    return this.#endTerm(reason, this.#left).then((ended) => ended === true);
  }

  /** @internal Whether its term has the key, also while its work is told to end. */
  get hasLock(): boolean {
    return this.#term?.isHeld === true;
  }

  /** Tells the work to end, and waits for `over`, unless the work itself calls this. */
  async #endTerm<T>(reason: 'resigned' | 'shutdown', over: Promise<T>): Promise<T | undefined> {
    const term = this.#term;
    term?.end(reason);
    return term && currentLocks().includes(term) ? undefined : over;
  }

  async #stand(): Promise<void> {
    const { clock } = this.parts.service;
    const { signal: until } = this.#closed;
    while (!until.aborted) {
      const pauseMs = await this.#standOnce();
      if (pauseMs > 0) await pause(clock, pauseMs, { until });
    }
    this.#changes.end();
  }

  /** Stands once, and serves the term that it may bring. Resolves to the pause before the next time. */
  async #standOnce(): Promise<number> {
    let term: Term;
    try {
      term = await this.#waitForElection();
    } catch (error) {
      if (isLockError(error, 'LOCK_SHUTDOWN')) this.#closed.abort();
      return this.#pauses.afterOutage();
    }
    if (this.#closed.signal.aborted) return term.release().then(() => 0);
    const serving = this.#serve(term);
    this.#termOver = serving;
    return serving;
  }

  async #waitForElection(): Promise<Term> {
    const { fullKey, options } = this.settings;
    const asked = { ...options, signal: this.#closed.signal };
    const hold = await new Acquisition(fullKey, asked, this.parts).run();
    if (hold instanceof KeyHeld) {
      const { holder, message } = hold;
      throw new LockTimeoutError(this.key, { waitMs: options.waitMs, holder, message });
    }
    return new Term(this.key, hold, this.parts.holds.release);
  }

  async #serve(term: Term): Promise<number> {
    const { fullKey: key } = this.settings;
    const { clock, observers } = this.parts.service;
    const { fencingToken } = term;
    const since = clock.now();
    this.#term = term;
    this.#changes.note();
    observers.notify('termBegan', () => ({ key, fencingToken }));
    const { reason, error } = await this.#runWork(term);
    this.#term = undefined;
    await term.release();
    const ledMs = clock.now() - since;
    // On a store without a queue, candidates of other processes ask first.
    if (!this.#closed.signal.aborted) this.parts.turns.markToYield(key);
    this.#changes.note();
    const fault = error === undefined ? {} : { error };
    observers.notify('termEnded', () => ({ key, fencingToken, ledMs, reason, ...fault }));
    return reason === 'failed' ? this.#pauses.afterFailure(ledMs) : this.#pauses.afterTerm(ledMs);
  }

  /** Runs the leader's work, and resolves to why the term ended. Never rejects. */
  async #runWork(term: Term): Promise<{ readonly reason: TermEnd; readonly error?: unknown }> {
    let fault: { readonly error?: unknown } = {};
    try {
      await term.run(() => this.settings.work(term));
      if (term.needsCompletion && term.isHeld) await term.complete();
    } catch (error) {
      fault = isAbort(error, term.signal) ? {} : { error };
    }
    const { aborted, reason } = term.signal;
    if (aborted && isLockError(reason, 'LOCK_LOST')) return { reason: reason.reason, ...fault };
    return { reason: 'error' in fault ? 'failed' : 'returned', ...fault };
  }

  #look(): Promise<Holder | undefined> | Holder {
    const { service } = this.parts;
    return this.isLeader ? service.metadata : currentHolder(service, this.settings.fullKey);
  }
}

/** Returns whether work threw this because it was told to end. */
function isAbort(error: unknown, { aborted, reason }: AbortSignal): boolean {
  if (!aborted) return false;
  return error === reason || isLockError(error, 'LOCK_LOST') || (error instanceof Error && error.name === 'AbortError');
}
