import { CleanUps } from './clean-ups.js';
import { Contender } from './contender.js';
import { Contending, type PollingOptions } from './contending.js';
import type { Guarantee, LeaseStore } from '../contract/lease-store.js';
import type { Lease } from './lease.js';
import type { AcquireRequest } from './lease-request.js';
import { assertTtl } from '../lock-options.js';
import { FirstQuestions } from './first-questions.js';
import { FirstQuestion, type FirstQuestionContext } from './question.js';
import { leaseOf } from './session-lease.js';

const CLOSED =
  'the backend is closed, by the lock service or the application that owned it: give a factory, such as redis({ url }), to each new one';

/** Waits for the leases of a store: lost replies, late replies and giving up, written once for all of them. */
export class LockBackend {
  readonly #contending: Contending;
  readonly #questions = new FirstQuestions();
  readonly #context: FirstQuestionContext;
  readonly #cleanUps: CleanUps;
  #closed = false;

  constructor(
    readonly store: LeaseStore,
    options: PollingOptions = {},
  ) {
    this.#cleanUps = new CleanUps(store);
    const contending = new Contending(store, this.#cleanUps.add, options);
    this.#contending = contending;
    this.#context = {
      store,
      questions: this.#questions,
      patienceMs: contending.patienceMs,
      leaseOf: (question, granted) => leaseOf(contending, question, granted),
      contend: (question) => new Contender(contending, question.key, question.request, question).run(),
    };
  }

  /** Shown in errors, events and metrics. */
  get name(): string {
    return this.store.name;
  }

  get guarantee(): Guarantee {
    return this.store.guarantee;
  }

  /**
   * Resolves to a lease once `key` is ours alone, or to `null` when `request.deadline` passes first; a deadline already
   * past means: try once. Unless it resolves to a lease, nothing of ours stays behind on the server: what could not be
   * taken back at once is taken back in the background.
   * @throws LockBackendError when the backend cannot answer; `request.signal.reason` when the caller gives up
   */
  acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    return new Promise<Lease | null>((resolve, reject) => {
      if (this.#closed) throw new Error(CLOSED);
      assertTtl(request.ttlMs, this.store);
      request.signal?.throwIfAborted();
      if (request.yields === true) resolve(new Contender(this.#contending, key, request).run());
      else this.#questions.add(new FirstQuestion(key, request, this.#context, resolve, reject));
    });
  }

  /** Takes a queue entry off the server in the background, for a caller who inherited it and will not ask. */
  abandon(key: string, { owner, ttlMs, deadline }: AcquireRequest): void {
    this.#cleanUps.add({ key, owner, ttlMs, clock: deadline.clock });
  }

  /** Calls off all who ask, or wait, now. */
  dismiss(reason: unknown): void {
    this.#questions.callOff(reason);
    for (const contender of this.#contending.contenders) contender.callOff(reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#cleanUps.close();
    await this.store.close();
  }
}
