import { shareProperty, suffixOf } from '../contract/claim.js';
import { isLockError, quote } from '../contract/errors.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import { runOutsideLocks } from '../holding/call-tree.js';
import type { Hold } from '../holding/hold.js';
import type { Holds, HoldTurns, InheritedQueueEntry } from '../holding/holds.js';
import { createOwner } from '../holding/process-identity.js';
import type { ServiceContext } from '../holding/service-context.js';
import type { AcquireRequest } from '../leasing/lease-request.js';
import type { Lease } from '../leasing/lease.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { untrustedMs } from '../options/option-resolver.js';
import type { OrderWatch } from '../ordering/order-watch.js';
import { Deadline } from '../time/deadline.js';
import { haveSameRequest, maxTurnsOf, slotOf } from '../turns/slot.js';
import { KeyHeld } from './key-held.js';

/** Parts of a service that its acquisitions share. */
export interface AcquisitionParts {
  readonly service: ServiceContext;
  readonly turns: HoldTurns;
  readonly holds: Holds;
  /** How many callers may wait for a key in this process. */
  readonly maxWaiters: number;
  readonly orderWatch: OrderWatch | undefined;
}

/**
 * One caller's acquisition of a key. It waits for the caller's turn in this process, and then takes over the previous
 * caller's lease, or requests one from the backend.
 */
export class Acquisition implements AcquireRequest {
  owner = '';
  inheritsQueueEntry = false;
  shouldYield = false;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly deadline: Deadline;
  readonly signal: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  readonly slot: string;
  readonly #since: number;
  /** Whether the next caller has this caller's turn, with its queue entry on the server. */
  #passed = false;
  /** Holder that was known when the turn was passed on. */
  #holderBefore: Holder | undefined;

  constructor(
    readonly key: string,
    readonly options: ResolvedOptions,
    private readonly parts: AcquisitionParts,
  ) {
    const { backend, clock, metadata } = parts.service;
    const { ttlMs, waitMs, signal } = options;
    this.#since = clock.now();
    this.slot = slotOf(key, options);
    this.lockDelayMs = untrustedMs(options, backend.store.traits);
    this.ttlMs = ttlMs + this.lockDelayMs;
    this.deadline = Deadline.after(waitMs, clock, this.#since);
    this.signal = signal;
    this.metadata = metadata;
  }

  /** Passes the turn and the queue entry to the next caller of this process, so that callers keep their order of arrival. */
  passQueueEntry(): boolean {
    const { slot, options, owner } = this;
    const { turns } = this.parts;
    if (!this.#passed && haveSameRequest(turns.nextOptions(slot), options)) {
      this.#holderBefore = this.#holder;
      turns.pass(slot, { owner });
      this.#passed = true;
    }
    return this.#passed;
  }

  onBlocked(by: Holder | Error | undefined): void {
    this.parts.turns.recordObstacle(this.slot, by);
  }

  /** Resolves to the caller's hold. Joins the hold of a caller of this process who shares the key, if there is one. */
  run(): Promise<Hold | KeyHeld> {
    const { key, slot, options } = this;
    const { turns, holds, orderWatch } = this.parts;
    const joined = options.mode === 'shared' ? holds.joinShared(slot, options) : undefined;
    if (joined) return Promise.resolve(this.#tell(joined, 'join'));
    const endWait = options.waitMs > 0 ? orderWatch?.begin(key, holds) : undefined;
    const taken = runOutsideLocks(() =>
      turns.enter(slot, maxTurnsOf(options)) ? this.#request(this.#newOwner()) : this.#waitForTurn(),
    );
    return endWait ? taken.finally(endWait) : taken;
  }

  async #waitForTurn(): Promise<Hold | KeyHeld> {
    const { key, slot, options, deadline } = this;
    const { turns, maxWaiters, service } = this.parts;
    if (options.waitMs === 0) return this.#refuse();
    const waitersHere = turns.countWaiters(slot);
    if (waitersHere >= maxWaiters) {
      const message = `${waitersHere} callers of this process already wait for ${quote(key)} (maxWaiters)`;
      return new KeyHeld(this.#holder, message);
    }
    service.observers.notify('waiting', () => ({ key, waitersHere: waitersHere + 1 }));
    const previous = await turns.wait(slot, options, deadline);
    if (previous === 'timed-out') return this.#refuse();
    return previous ? this.#takeOver(previous) : this.#request(this.#newOwner());
  }

  /**
   * Returns the result for a caller whose wait ended before its turn: the key is held. Throws the backend's last failure
   * if there was one.
   */
  #refuse(): KeyHeld {
    const { key, slot } = this;
    const { holds, turns, service } = this.parts;
    const obstacle = holds.getById(slot) ? undefined : turns.obstacleOf(slot);
    if (obstacle instanceof Error) throw service.observers.notifyFailure(key, 'acquire', obstacle);
    return new KeyHeld(this.#holder);
  }

  /** Holder of the key, as far as this process knows. */
  get #holder(): Holder | undefined {
    const { holds, turns, service } = this.parts;
    if (holds.getById(this.slot)) return service.metadata;
    const obstacle = turns.obstacleOf(this.slot);
    return obstacle instanceof Error ? undefined : obstacle;
  }

  #newOwner(): string {
    return createOwner() + suffixOf(this.options);
  }

  #takeOver(previous: Hold | InheritedQueueEntry): Promise<Hold | KeyHeld> | Hold {
    const { holds, service } = this.parts;
    try {
      if ('owner' in previous) {
        this.inheritsQueueEntry = true;
        return this.#request(previous.owner);
      }
      if (previous.isShared) return this.#finish(previous, 'join');
      const hold = holds.continueLease(previous, this.options);
      return hold ? this.#finish(hold, 'hand-off') : this.#request(this.#newOwner());
    } finally {
      // Work begun with the hold or the queue entry is counted separately from here on.
      service.pendingWork.end();
    }
  }

  /** Requests a lease from the backend. Without one the caller's turn is over. */
  #request(owner: string): Promise<Hold | KeyHeld> {
    const { turns, service } = this.parts;
    this.owner = owner;
    this.shouldYield = turns.consumeYieldMark(this.slot);
    service.pendingWork.begin();
    return this.#requestLease().then(
      (granted) => this.#onLease(granted),
      (error: unknown) => this.#onFailure(error),
    );
  }

  #requestLease(): Promise<Lease | null> {
    const { backend, stopSignal } = this.parts.service;
    const refusal = [stopSignal, this.signal].find((signal) => signal?.aborted);
    if (!refusal) return backend.acquire(this.key, this);
    if (this.inheritsQueueEntry && !this.passQueueEntry()) backend.leaveQueue(this.key, this);
    return Promise.reject(refusal.reason);
  }

  #onLease(lease: Lease | null): Hold | KeyHeld | Promise<never> {
    const { key, slot, options } = this;
    const { turns, holds, service } = this.parts;
    service.pendingWork.end();
    if (lease) return this.#finish(holds.beginHold(key, options, lease), 'backend');
    const held = new KeyHeld(this.#passed ? this.#holderBefore : this.#holder);
    if (!this.#passed) turns.end(slot);
    return held;
  }

  #onFailure(error: unknown): never {
    const { key, slot, deadline, signal } = this;
    const { turns, service } = this.parts;
    service.pendingWork.end();
    const isCalledOff = (signal?.aborted === true && error === signal.reason) || isLockError(error, 'LOCK_SHUTDOWN');
    const failure: unknown = isCalledOff ? error : service.observers.notifyFailure(key, 'acquire', error);
    if (!this.#passed) turns.fail(slot, failure, deadline);
    throw failure;
  }

  /** Gives the hold to the caller, unless the caller has given up meanwhile, or the service has stopped. */
  #finish(hold: Hold, from: 'backend' | 'hand-off' | 'join'): Hold | Promise<never> {
    const { signal } = this;
    const { stopSignal } = this.parts.service;
    if (signal?.aborted === true) return this.#drop(hold, signal.reason);
    if (stopSignal.aborted) return this.#drop(hold, stopSignal.reason);
    return this.#tell(hold, from);
  }

  #tell(hold: Hold, from: 'backend' | 'hand-off' | 'join'): Hold {
    const { clock, observers } = this.parts.service;
    observers.notify('acquired', () => ({
      key: this.key,
      fencingToken: hold.fencingToken,
      waitedMs: clock.now() - this.#since,
      from,
      ...shareProperty(hold.claim),
    }));
    return hold;
  }

  async #drop(hold: Hold, reason: unknown): Promise<never> {
    await this.parts.holds.releaseUndelivered(hold);
    throw reason;
  }
}
