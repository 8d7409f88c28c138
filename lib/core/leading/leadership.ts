import { isLockError, LockTimeoutError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import type { TermEnd } from '../events/lock-observer.js';
import { runOutsideLocks } from '../holding/call-tree.js';
import { currentLocks } from '../holding/lock-handle.js';
import { whileAwaited } from '../kit/awaited-promises.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { assertLooks, currentHolder } from '../looking/readings.js';
import { pause } from '../time/timers.js';
import { within } from '../time/within.js';
import { Acquisition, type AcquisitionParts } from '../acquiring/acquisition.js';
import { KeyHeld } from '../acquiring/key-held.js';
import { Changes } from './changes.js';
import type { LeaderWork } from './lead-options.js';
import { Pauses } from './pauses.js';
import { Term } from './term.js';

export interface LeadershipSettings {
  /** With the namespace. */
  readonly fullKey: string;
  readonly work: LeaderWork;
  readonly options: Readonly<ResolvedOptions>;
  readonly graceMs: number;
}

/**
 * A candidate for an office that one process has at a time, and its leader now and then: `LockService.lead` makes one.
 * It stands until `close()`, or until the service ends.
 */
export class Leadership implements AsyncDisposable {
  /** @internal Resolves when it stands no more, and its work has ended. */
  readonly over: Promise<void>;
  readonly #closed = new AbortController();
  readonly #changes: Changes;
  readonly #pauses: Pauses;
  #term: Term | undefined;
  #termOver: Promise<unknown> = Promise.resolve();
  #left: Promise<boolean> | undefined;

  /** @internal */
  constructor(
    /** Without the namespace. */
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
    return this.#term?.leads === true;
  }

  /**
   * Who leads, by one reading of the backend, or by none where it is this process. `undefined`: nobody.
   * @throws LockConfigurationError the backend cannot tell; LockBackendError it does not answer
   */
  async leader(): Promise<Holder | undefined> {
    return whileAwaited(async () => this.#look());
  }

  /**
   * Who leads, from now on and whenever that changes; `undefined`: nobody that is known of. Changes here are told at
   * once, those elsewhere by a reading every third of the TTL. A reader that is slow misses some, and never the last.
   * Ends with its signal, the reader's `break`, or the candidacy.
   * @throws LockConfigurationError the backend cannot tell
   */
  changes({ signal }: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<Holder | undefined> {
    assertLooks(this.parts.service, this.settings.fullKey);
    return this.#changes.stream(signal);
  }

  /**
   * Steps back to the end of the line: tells the work to end, and resolves when it has, and the key is released. Called
   * by the work itself it resolves at once. Does nothing where another process leads.
   */
  async resign(): Promise<void> {
    // An observer of the beginning may call this when the term is not under way yet.
    const over = Promise.resolve().then(() => this.#termOver);
    await whileAwaited(() => this.#endTerm('resigned', over));
  }

  /**
   * Stands no more, for good. Tells the work to end, and resolves when it has and the key is released, or after
   * `graceMs`. The key of work that goes on stays taken. Called by the work itself it resolves at once. Idempotent.
   */
  async close(): Promise<void> {
    await whileAwaited(() => this.leave('resigned'));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal Whether all ended in time. */
  leave(reason: 'resigned' | 'shutdown'): Promise<boolean> {
    this.#closed.abort();
    const { graceMs } = this.settings;
    // Readers need not wait for work that goes on.
    this.#left ??= within(this.parts.service.clock, graceMs, this.over).finally(() => this.#changes.end());
    return this.#endTerm(reason, this.#left).then((ended) => ended === true);
  }

  /** @internal Whether its term has the key, also while its work is told to end. */
  get holds(): boolean {
    return this.#term?.isHeld === true;
  }

  /** Not waiting for `over` in the work that it waits for. */
  async #endTerm<T>(reason: 'resigned' | 'shutdown', over: Promise<T>): Promise<T | undefined> {
    const term = this.#term;
    term?.end(reason);
    return term && currentLocks().includes(term) ? undefined : over;
  }

  async #stand(): Promise<void> {
    const { clock } = this.parts.service;
    const { signal: until } = this.#closed;
    while (!until.aborted) {
      const pauseMs = await this.#candidacy();
      if (pauseMs > 0) await pause(clock, pauseMs, { until });
    }
    this.#changes.end();
  }

  /** Until it is over, with the term that it may have brought. Resolves to how long to pause before the next one. */
  async #candidacy(): Promise<number> {
    let term: Term;
    try {
      term = await this.#elected();
    } catch (error) {
      if (isLockError(error, 'LOCK_SHUTDOWN')) this.#closed.abort();
      return this.#pauses.afterOutage();
    }
    if (this.#closed.signal.aborted) return term.release().then(() => 0);
    const serving = this.#serve(term);
    this.#termOver = serving;
    return serving;
  }

  async #elected(): Promise<Term> {
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
    const { reason, error } = await this.#work(term);
    this.#term = undefined;
    await term.release();
    const ledMs = clock.now() - since;
    // On a store that keeps no line, those who wait elsewhere ask first.
    if (!this.#closed.signal.aborted) this.parts.turns.yieldNext(key);
    this.#changes.note();
    const fault = error === undefined ? {} : { error };
    observers.notify('termEnded', () => ({ key, fencingToken, ledMs, reason, ...fault }));
    return reason === 'failed' ? this.#pauses.afterFailure(ledMs) : this.#pauses.after(ledMs);
  }

  /** Never rejects. */
  async #work(term: Term): Promise<{ readonly reason: TermEnd; readonly error?: unknown }> {
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

/** Whether work threw this because it was told to end. */
function isAbort(error: unknown, { aborted, reason }: AbortSignal): boolean {
  if (!aborted) return false;
  return error === reason || isLockError(error, 'LOCK_LOST') || (error instanceof Error && error.name === 'AbortError');
}
