import { KeyHeld } from './blockers.js';
import { Deadline } from '../time/deadline.js';
import { claimFor, covers, describeClaim, shown, suffixOf } from '../contract/claim.js';
import { isLockError, LockDeadlockError, quote } from '../contract/errors.js';
import { currentLocks } from '../holding/lock-handle.js';
import type { Hold, HoldListener } from '../holding/hold.js';
import type { HoldRegistry } from '../holding/hold-registry.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import type { Lease } from '../leasing/lease.js';
import type { AcquireRequest } from '../leasing/lease-request.js';
import { isAlike, type LeftEntry, mostTurns, slotOf } from './local-queue.js';
import type { ResolvedOptions } from '../lock-options.js';
import { untrustedMs } from '../option-resolver.js';
import { newOwner } from '../holding/process-identity.js';
import { innermost, outside } from '../holding/call-tree.js';

/** One caller's way to a hold: its turn in this process, then the lease of the caller before, or one of the backend. */
export class Acquisition implements AcquireRequest {
  owner = '';
  inherited = false;
  yields = false;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly deadline: Deadline;
  readonly signal: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  /** Who waits in it may take our place. */
  readonly slot: string;
  readonly #since: number;
  /** The next caller has our queue entry, and our turn with it. */
  #passed = false;
  /** The holder that was known when the turn was passed on. */
  #holderBefore: Holder | undefined;

  constructor(
    readonly key: string,
    readonly options: ResolvedOptions,
    private readonly holds: HoldRegistry,
  ) {
    const { backend, clock, metadata } = holds.settings;
    const { ttlMs, waitMs, signal } = options;
    this.#since = clock.now();
    this.slot = slotOf(key, options);
    this.lockDelayMs = untrustedMs(options, backend.store);
    this.ttlMs = ttlMs + this.lockDelayMs;
    this.deadline = Deadline.after(waitMs, clock, this.#since);
    this.signal = signal;
    this.metadata = metadata;
  }

  /** Order of arrival is that of the processes' callers, not of the one that asks for them. */
  pass(): boolean {
    const { slot, options, owner, holds } = this;
    if (!this.#passed && isAlike(holds.queue.next(slot), options)) {
      this.#holderBefore = holds.holderOf(slot);
      holds.handOn(slot, { owner });
      this.#passed = true;
    }
    return this.#passed;
  }

  blockedBy(by: Holder | Error | undefined): void {
    this.holds.blockers.see(this.slot, by);
  }

  /**
   * Waits for our turn in this process, then inherits the lease of the caller before us or asks the backend. Joins who
   * has the key here and shares it.
   */
  run(): Promise<Hold | KeyHeld> {
    const { key, slot, options, holds } = this;
    const { orderWatch } = holds.settings;
    const joined = options.mode === 'shared' ? holds.joinable.join(slot, options) : undefined;
    if (joined) return Promise.resolve(this.#tell(joined, 'join'));
    const endWait = options.waitMs > 0 ? orderWatch?.begin(key, holds.byId) : undefined;
    const taken = outside(() =>
      holds.queue.enter(slot, mostTurns(options)) ? this.#ask(this.#newOwner()) : this.#takeInTurn(),
    );
    return endWait ? taken.finally(endWait) : taken;
  }

  async #takeInTurn(): Promise<Hold | KeyHeld> {
    const { key, slot, options, deadline, holds } = this;
    const { maxWaiters, observers } = holds.settings;
    if (options.waitMs === 0) return this.#late();
    const waitersHere = holds.queue.waiting(slot);
    if (waitersHere >= maxWaiters) {
      const message = `${waitersHere} callers of this process already wait for ${quote(key)} (maxWaiters)`;
      return new KeyHeld(holds.holderOf(slot), message);
    }
    observers.notify('waiting', () => ({ key, waitersHere: waitersHere + 1 }));
    const previous = await holds.queue.wait(slot, options, deadline);
    if (previous === 'timed-out') return this.#late();
    return previous ? this.#inherit(previous) : this.#ask(this.#newOwner());
  }

  /** Our time is up, and we could not ask the backend. */
  #late(): KeyHeld {
    const { key, slot, holds } = this;
    const failure = holds.byId.has(slot) ? undefined : holds.blockers.failure(slot);
    if (failure) throw holds.settings.observers.notifyFailure(key, 'acquire', failure);
    return new KeyHeld(holds.holderOf(slot));
  }

  #newOwner(): string {
    return newOwner() + suffixOf(this.options);
  }

  #inherit(previous: Hold | LeftEntry): Promise<Hold | KeyHeld> | Hold {
    try {
      if ('owner' in previous) {
        this.inherited = true;
        return this.#ask(previous.owner);
      }
      if (previous.isShared) return this.#begin(previous, 'join');
      const hold = this.holds.inherit(previous, this.options);
      return hold ? this.#begin(hold, 'hand-off') : this.#ask(this.#newOwner());
    } finally {
      // Whatever was begun with it counts by itself from now on.
      this.holds.releases.underWay.end();
    }
  }

  /** Asks the backend. Unless it gives us a lease, our turn is over. */
  #ask(owner: string): Promise<Hold | KeyHeld> {
    const { slot, holds } = this;
    this.owner = owner;
    this.yields = holds.yielding.delete(slot);
    holds.releases.underWay.begin();
    return this.#lease().then(
      (granted) => this.#onLease(granted),
      (error: unknown) => this.#onRejected(error),
    );
  }

  #lease(): Promise<Lease | null> {
    const { backend, stopped } = this.holds.settings;
    const refusal = [stopped, this.signal].find((signal) => signal?.aborted);
    if (!refusal) return backend.acquire(this.key, this);
    if (this.inherited && !this.pass()) backend.abandon(this.key, this);
    return Promise.reject(refusal.reason);
  }

  #onLease(lease: Lease | null): Hold | KeyHeld | Promise<never> {
    const { key, slot, options, holds } = this;
    holds.releases.underWay.end();
    if (lease) {
      const hold = holds.holdOf(key, options, lease);
      if (hold.isShared) holds.share(hold);
      return this.#begin(hold, 'backend');
    }
    const busy = new KeyHeld(this.#passed ? this.#holderBefore : holds.holderOf(slot));
    if (!this.#passed) holds.endTurn(slot);
    return busy;
  }

  #onRejected(error: unknown): never {
    const { key, slot, deadline, signal, holds } = this;
    holds.releases.underWay.end();
    const calledOff = (signal?.aborted === true && error === signal.reason) || isLockError(error, 'LOCK_SHUTDOWN');
    const failure: unknown = calledOff ? error : holds.settings.observers.notifyFailure(key, 'acquire', error);
    if (!this.#passed) holds.onFailure(slot, failure, deadline);
    throw failure;
  }

  /** Unless the caller has given up meanwhile, or the service. */
  #begin(hold: Hold, from: 'backend' | 'hand-off' | 'join'): Hold | Promise<never> {
    const { signal, holds } = this;
    const { stopped } = holds.settings;
    if (from !== 'join') holds.add(hold);
    if (signal?.aborted === true) return this.#rejected(hold, signal.reason);
    if (stopped.aborted) return this.#rejected(hold, stopped.reason);
    return this.#tell(hold, from);
  }

  #tell(hold: Hold, from: 'backend' | 'hand-off' | 'join'): Hold {
    const { clock, observers } = this.holds.settings;
    observers.notify('acquired', () => ({
      key: this.key,
      fencingToken: hold.fencingToken,
      waitedMs: clock.now() - this.#since,
      from,
      ...shown(hold.claim),
    }));
    return hold;
  }

  async #rejected(hold: Hold, reason: unknown): Promise<never> {
    await this.holds.drop(hold);
    throw reason;
  }
}

/**
 * Enters the hold of `key` that the call tree has already, if any. `KeyHeld`: the caller asks not to re-enter, or for
 * more than the tree has, and not to wait.
 * @throws LockLostError; LockDeadlockError when it asks to wait for itself
 */
export function reenter(
  key: string,
  options: ResolvedOptions,
  { listener, settings }: HoldRegistry,
): Hold | KeyHeld | undefined {
  const hold = holdAround(key, listener);
  if (!hold) return undefined;
  if (!hold.isHeld) throw hold.lossError();
  const { fencingToken, claim } = hold;
  const wanted = claimFor(options);
  const isReentrant = options.reentrant && hold.options.reentrant;
  if (isReentrant && covers(claim, wanted)) {
    hold.enter();
    settings.observers.notify('acquired', () => ({
      key,
      fencingToken,
      waitedMs: 0,
      from: 're-entry',
      ...shown(claim),
    }));
    return hold;
  }
  if (options.waitMs === 0) return new KeyHeld(settings.metadata);
  const upgrade = isReentrant ? { has: describeClaim(claim), asks: describeClaim(wanted) } : undefined;
  const held = currentLocks().map((lock) => lock.key);
  throw new LockDeadlockError(held, key, [], upgrade);
}

/** The hold of `key` that the call tree has from `listener`'s service, unless everybody left it meanwhile. */
function holdAround(key: string, listener: HoldListener): Hold | undefined {
  for (let entry = innermost(); entry; entry = entry.outer) {
    const { hold, handle } = entry;
    // Other trees may be inside a hold that is shared.
    const hasLeft = hold.ended || (hold.isShared && handle.state === 'released');
    if (hold.listener === listener && hold.key === key && !hasLeft) return hold;
  }
  return undefined;
}
