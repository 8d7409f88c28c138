import { KeyHeld } from './blockers.js';
import { Deadline } from '../time/deadline.js';
import { LockDeadlockError, LockShutdownError, quote } from '../contract/errors.js';
import { currentLocks } from '../holding/lock-handle.js';
import type { Hold, HoldListener } from '../holding/hold.js';
import type { HoldRegistry } from '../holding/hold-registry.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import type { Lease } from '../leasing/lease.js';
import type { AcquireRequest } from '../leasing/lease-request.js';
import { isAlike, type LeftEntry } from './local-queue.js';
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
  readonly #since: number;
  /** The next caller has our queue entry, and our turn with it. */
  #passed = false;

  constructor(
    readonly key: string,
    readonly options: ResolvedOptions,
    private readonly holds: HoldRegistry,
  ) {
    const { backend, clock, metadata } = holds.settings;
    const { ttlMs, waitMs, signal } = options;
    this.#since = clock.now();
    this.lockDelayMs = untrustedMs(options, backend.store);
    this.ttlMs = ttlMs + this.lockDelayMs;
    this.deadline = Deadline.after(waitMs, clock, this.#since);
    this.signal = signal;
    this.metadata = metadata;
  }

  /** Order of arrival is that of the processes' callers, not of the one that asks for them. */
  pass(): boolean {
    const { key, options, owner, holds } = this;
    if (!this.#passed && isAlike(holds.queue.next(key), options)) {
      holds.handOn(key, { owner });
      this.#passed = true;
    }
    return this.#passed;
  }

  blockedBy(by: Holder | Error | undefined): void {
    this.holds.blockers.see(this.key, by);
  }

  /** Waits for our turn in this process, then inherits the lease of the caller before us or asks the backend. */
  run(): Promise<Hold | KeyHeld> {
    const { key, options, holds } = this;
    const { orderWatch } = holds.settings;
    const endWait = options.waitMs > 0 ? orderWatch?.begin(key, holds.byKey) : undefined;
    const taken = outside(() => (holds.queue.enter(key) ? this.#ask(newOwner()) : this.#takeInTurn()));
    return endWait ? taken.finally(endWait) : taken;
  }

  async #takeInTurn(): Promise<Hold | KeyHeld> {
    const { key, options, deadline, holds } = this;
    const { maxWaiters, observers } = holds.settings;
    if (options.waitMs === 0) return holds.late(key);
    const waitersHere = holds.queue.waiting(key);
    if (waitersHere >= maxWaiters) {
      const message = `${waitersHere} callers of this process already wait for ${quote(key)} (maxWaiters)`;
      return new KeyHeld(holds.holderOf(key), message);
    }
    observers.notify('waiting', () => ({ key, waitersHere: waitersHere + 1 }));
    const previous = await holds.queue.wait(key, options, deadline);
    if (previous === 'timed-out') return holds.late(key);
    return previous ? this.#inherit(previous) : this.#ask(newOwner());
  }

  #inherit(previous: Hold | LeftEntry): Promise<Hold | KeyHeld> | Hold {
    try {
      if ('owner' in previous) {
        this.inherited = true;
        return this.#ask(previous.owner);
      }
      const hold = this.holds.inherit(previous, this.options);
      return hold ? this.#begin(hold) : this.#ask(newOwner());
    } finally {
      // Whatever was begun with it counts by itself from now on.
      this.holds.releases.underWay.end();
    }
  }

  /** Asks the backend. Unless it gives us a lease, our turn is over. */
  #ask(owner: string): Promise<Hold | KeyHeld> {
    const { key, holds } = this;
    this.owner = owner;
    this.yields = holds.yielding.delete(key);
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
    const { key, options, holds } = this;
    holds.releases.underWay.end();
    if (lease) return this.#begin(holds.holdOf(key, options, lease));
    const busy = new KeyHeld(holds.holderOf(key));
    if (!this.#passed) holds.endTurn(key);
    return busy;
  }

  #onRejected(error: unknown): never {
    const { key, deadline, signal, holds } = this;
    holds.releases.underWay.end();
    const calledOff = (signal?.aborted === true && error === signal.reason) || error instanceof LockShutdownError;
    const failure: unknown = calledOff ? error : holds.settings.observers.notifyFailure(key, 'acquire', error);
    if (!this.#passed) holds.onFailure(key, failure, deadline);
    throw failure;
  }

  /** Unless the caller has given up meanwhile, or the service. */
  #begin(hold: Hold): Hold | Promise<never> {
    const { key, signal, holds } = this;
    const { clock, observers, stopped } = holds.settings;
    holds.add(hold);
    if (signal?.aborted === true) return this.#rejected(hold, signal.reason);
    if (stopped.aborted) return this.#rejected(hold, stopped.reason);
    observers.notify('acquired', () => ({
      key,
      fencingToken: hold.fencingToken,
      waitedMs: clock.now() - this.#since,
      from: hold.handOff === 0 ? 'backend' : 'hand-off',
    }));
    return hold;
  }

  async #rejected(hold: Hold, reason: unknown): Promise<never> {
    await this.holds.drop(hold);
    throw reason;
  }
}

/**
 * Enters the hold of `key` that the call tree has already, if any. `KeyHeld`: the caller asks not to re-enter and not
 * to wait.
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
  const { fencingToken } = hold;
  if (options.reentrant && hold.options.reentrant) {
    hold.enter();
    settings.observers.notify('acquired', () => ({ key, fencingToken, waitedMs: 0, from: 're-entry' }));
    return hold;
  }
  if (options.waitMs === 0) return new KeyHeld(settings.metadata);
  throw new LockDeadlockError(
    currentLocks().map((lock) => lock.key),
    key,
  );
}

/** The hold of `key` that the call tree has from `listener`'s service, unless everybody left it meanwhile. */
function holdAround(key: string, listener: HoldListener): Hold | undefined {
  for (let entry = innermost(); entry; entry = entry.outer) {
    const { hold } = entry;
    if (hold.listener === listener && hold.key === key && !hold.ended) return hold;
  }
  return undefined;
}
