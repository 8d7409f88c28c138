import { CleanUps } from './clean-ups.js';
import { Contender } from './contender.js';
import { Contending, type PollingOptions } from './contending.js';
import { FirstQuestion, FirstQuestions } from './first-question.js';
import type { Guarantee, LeaseStore } from '../contract/lease-store.js';
import type { Lease } from './lease.js';
import type { AcquireRequest } from './lease-request.js';
import { assertTtl } from '../lock-options.js';

const CLOSED =
  'the backend is closed, by the lock service or the application that owned it: give a factory, such as redis({ url }), to each new one';

/** Waits for the leases of a store: lost replies, late replies and giving up, written once for all of them. */
export class LockBackend {
  readonly #contending: Contending;
  readonly #unanswered = new FirstQuestions();
  readonly #cleanUps: CleanUps;
  #closed = false;

  constructor(
    readonly store: LeaseStore,
    options: PollingOptions = {},
  ) {
    this.#cleanUps = new CleanUps(store);
    this.#contending = new Contending(store, this.#cleanUps.add, options);
  }

  /** Shown in errors, events and metrics. */
  get name(): string {
    return this.store.name;
  }

  get guarantee(): Guarantee {
    return this.store.guarantee;
  }

  /**
   * Resolves to a lease once `key` is ours alone, or to `null` when `request.deadline` passes first; a deadline already past
   * means: try once. Unless it resolves to a lease, nothing of ours stays behind on the server: what could not be taken back
   * at once is taken back in the background.
   * @throws LockBackendError when the backend cannot answer; `request.signal.reason` when the caller gives up
   */
  acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    return new Promise<Lease | null>((resolve) => {
      if (this.#closed) throw new Error(CLOSED);
      assertTtl(request.ttlMs, this.store);
      request.signal?.throwIfAborted();
      const contending = this.#contending;
      if (request.yields === true) resolve(new Contender(contending, key, request).run());
      else new FirstQuestion(contending, key, request, resolve, this.#unanswered).begin();
    });
  }

  /** Calls off all who ask, or wait, now. */
  dismiss(reason: unknown): void {
    for (let first = this.#unanswered.first; first; first = this.#unanswered.first) first.goOn();
    for (const contender of this.#contending.contenders) contender.callOff(reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#cleanUps.close();
    await this.store.close();
  }
}
