import { shareProperty, ownerSuffixOf } from '../contract/claim.js';
import { isLockError, quote } from '../contract/errors.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import { runOutsideLocks } from '../holding/call-tree.js';
import type { Hold } from '../holding/hold.js';
import type { Holds, HoldTurns, InheritedQueueEntry } from '../holding/holds.js';
import { createOwner } from '../holding/process-identity.js';
import type { ServiceContext } from '../holding/service-context.js';
import { type AcquireRequest, NoAnswerYetError } from '../leasing/lease-request.js';
import type { Lease } from '../leasing/lease.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { getUntrustedMs } from '../options/option-resolver.js';
import type { OrderWatch } from '../ordering/order-watch.js';
import { Deadline } from '../time/deadline.js';
import { haveSameRequest, maxTurnsOf, slotOf } from '../turns/slot.js';
import { KeyHeld } from './key-held.js';

/** Objects and settings that all acquisitions of one service share. */
export interface AcquisitionDependencies {
  readonly service: ServiceContext;
  readonly turns: HoldTurns;
  readonly holds: Holds;
  readonly maxWaiters: number;
  readonly orderWatch: OrderWatch | undefined;
}

/**
 * One caller's acquisition of a key. An acquisition waits for the caller's turn in this process, and then takes over the
 * previous caller's lease, or requests one from the backend.
 */
export class Acquisition implements AcquireRequest {
  owner = '';
  inheritsQueueEntry = false;
  shouldYield = false;
  readonly ttlMs: number;
  readonly untrustedMs: number;
  readonly deadline: Deadline;
  /**
   * Whether `waitMs` is 0. `false` for a waiting caller even after its deadline, because the backend waits for the
   * answer to a single attempt without a limit.
   */
  readonly isSingleAttempt: boolean;
  readonly signal: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  readonly slot: string;
  readonly #startedAt: number;
  #hasPassedTurn = false;
  /** Holder that was known before `Turns.passTurn`, which deletes the known holder. */
  #holderBeforePass: Holder | undefined;

  constructor(
    readonly key: string,
    readonly options: ResolvedOptions,
    private readonly dependencies: AcquisitionDependencies,
  ) {
    const { backend, clock, metadata } = dependencies.service;
    const { ttlMs, waitMs, signal } = options;
    this.#startedAt = clock.now();
    this.slot = slotOf(key, options);
    this.untrustedMs = getUntrustedMs(options, backend.store.traits);
    this.ttlMs = ttlMs + this.untrustedMs;
    this.deadline = Deadline.after(waitMs, clock, this.#startedAt);
    this.isSingleAttempt = waitMs === 0;
    this.signal = signal;
    this.metadata = metadata;
  }

  /**
   * Passes the turn and the queue entry to the next caller, so that callers keep their order. Returns `false` if no
   * caller waits, or if the next caller would send a different request.
   */
  handOffQueueEntry(): boolean {
    const { slot, options, owner } = this;
    const { turns } = this.dependencies;
    if (!this.#hasPassedTurn && haveSameRequest(turns.getNextWaiterOptions(slot), options)) {
      this.#holderBeforePass = this.#knownHolder;
      turns.passTurn(slot, { owner });
      this.#hasPassedTurn = true;
    }
    return this.#hasPassedTurn;
  }

  onBlocked(obstacle: Holder | Error | undefined): void {
    this.dependencies.turns.recordObstacle(this.slot, obstacle);
  }

  run(): Promise<Hold | KeyHeld> {
    const { key, slot, options } = this;
    const { turns, holds, orderWatch } = this.dependencies;
    const joinedHold = options.mode === 'shared' ? holds.joinShared(slot, options) : undefined;
    if (joinedHold) return Promise.resolve(this.#notifyAcquired(joinedHold, 'join'));
    const endWait = options.waitMs > 0 ? orderWatch?.beginWait(key, holds) : undefined;
    const holdPromise = runOutsideLocks(() =>
      turns.tryTakeTurn(slot, maxTurnsOf(options)) ? this.#requestHold() : this.#waitForTurn(),
    );
    return endWait ? holdPromise.finally(endWait) : holdPromise;
  }

  async #waitForTurn(): Promise<Hold | KeyHeld> {
    const { key, slot, options, deadline } = this;
    const { turns, maxWaiters, service } = this.dependencies;
    if (options.waitMs === 0) return this.#endWithoutTurn();
    const waitersHere = turns.countWaiters(slot);
    if (waitersHere >= maxWaiters) {
      const message = `${waitersHere} callers of this process already wait for ${quote(key)} (maxWaiters)`;
      return new KeyHeld(this.#knownHolder, message);
    }
    // The wait begins before the event, because an observer of the event may free the key or abort the wait.
    const handoverPromise = turns.waitForTurn(slot, options, deadline);
    service.observers.notify('waiting', () => ({ key, waitersHere: waitersHere + 1 }));
    const handover = await handoverPromise;
    if (handover === 'timed-out') return this.#endWithoutTurn();
    return handover ? this.#takeOverFrom(handover) : this.#requestHold();
  }

  /**
   * Returns the result for a caller that got no turn within its `waitMs`.
   * @throws the backend's last failure, if there was one. For a caller with `waitMs: 0`, another caller's unanswered
   * request is no failure
   */
  #endWithoutTurn(): KeyHeld {
    const { key, slot, options } = this;
    const { holds, turns, service } = this.dependencies;
    const obstacle = holds.getById(slot) ? undefined : turns.getObstacle(slot);
    const isFailure = obstacle instanceof Error && !(options.waitMs === 0 && obstacle instanceof NoAnswerYetError);
    if (isFailure) throw service.observers.notifyFailure(key, 'acquire', obstacle);
    return new KeyHeld(this.#knownHolder);
  }

  get #knownHolder(): Holder | undefined {
    const { holds, turns, service } = this.dependencies;
    if (holds.getById(this.slot)) return service.metadata;
    const obstacle = turns.getObstacle(this.slot);
    return obstacle instanceof Error ? undefined : obstacle;
  }

  #createOwnerName(): string {
    return createOwner() + ownerSuffixOf(this.options);
  }

  #takeOverFrom(handover: Hold | InheritedQueueEntry): Promise<Hold | KeyHeld> | Hold {
    const { holds, service } = this.dependencies;
    try {
      if ('owner' in handover) {
        this.inheritsQueueEntry = true;
        return this.#requestHold(handover.owner);
      }
      if (handover.isShared) return this.#deliverUnlessCancelled(handover, 'join');
      const hold = holds.beginHandedOffHold(handover, this.options);
      return hold ? this.#deliverUnlessCancelled(hold, 'hand-off') : this.#requestHold();
    } finally {
      // `Turns` counted the handover as pending work. A request that began above is counted separately.
      service.pendingWork.end();
    }
  }

  /** Whatever fails in here ends the turn. @param owner owner of an inherited queue entry; otherwise a new one */
  #requestHold(owner?: string): Promise<Hold | KeyHeld> {
    const { turns, service } = this.dependencies;
    this.shouldYield = turns.consumeYieldMark(this.slot);
    service.pendingWork.begin();
    return this.#requestLease(owner).then(
      (lease) => this.#onLeaseOrRefusal(lease),
      (error: unknown) => this.#onFailure(error),
    );
  }

  #requestLease(owner: string | undefined): Promise<Lease | null> {
    try {
      this.owner = owner ?? this.#createOwnerName();
    } catch (error) {
      return Promise.reject(error);
    }
    const { backend, stopSignal } = this.dependencies.service;
    const abortedSignal = [stopSignal, this.signal].find((signal) => signal?.aborted);
    if (!abortedSignal) return backend.acquire(this.key, this);
    if (this.inheritsQueueEntry && !this.handOffQueueEntry()) backend.leaveQueue(this.key, this);
    return Promise.reject(abortedSignal.reason);
  }

  #onLeaseOrRefusal(lease: Lease | null): Hold | KeyHeld | Promise<never> {
    const { key, slot, options } = this;
    const { turns, holds, service } = this.dependencies;
    service.pendingWork.end();
    if (lease) turns.recordObstacle(slot, undefined);
    if (lease) return this.#deliverUnlessCancelled(holds.beginHold(key, options, lease), 'backend');
    const keyHeld = new KeyHeld(this.#hasPassedTurn ? this.#holderBeforePass : this.#knownHolder);
    if (!this.#hasPassedTurn) turns.endTurn(slot);
    return keyHeld;
  }

  #onFailure(error: unknown): never {
    const { key, slot, deadline, signal } = this;
    const { turns, service } = this.dependencies;
    service.pendingWork.end();
    const isCancelled = (signal?.aborted === true && error === signal.reason) || isLockError(error, 'LOCK_SHUTDOWN');
    const failure: unknown = isCancelled ? error : service.observers.notifyFailure(key, 'acquire', error);
    if (!this.#hasPassedTurn) {
      if (isCancelled) turns.endTurn(slot);
      else turns.failTurn(slot, failure, deadline);
    }
    throw failure;
  }

  #deliverUnlessCancelled(hold: Hold, from: 'backend' | 'hand-off' | 'join'): Hold | Promise<never> {
    const { signal } = this;
    const { stopSignal } = this.dependencies.service;
    if (signal?.aborted === true) return this.#releaseAndReject(hold, signal.reason);
    if (stopSignal.aborted) return this.#releaseAndReject(hold, stopSignal.reason);
    return this.#notifyAcquired(hold, from);
  }

  #notifyAcquired(hold: Hold, from: 'backend' | 'hand-off' | 'join'): Hold {
    const { clock, observers } = this.dependencies.service;
    observers.notify('acquired', () => ({
      key: this.key,
      fencingToken: hold.fencingToken,
      waitedMs: clock.now() - this.#startedAt,
      from,
      ...shareProperty(hold.claim),
    }));
    return hold;
  }

  async #releaseAndReject(hold: Hold, reason: unknown): Promise<never> {
    await this.dependencies.holds.releaseUndelivered(hold);
    throw reason;
  }
}
