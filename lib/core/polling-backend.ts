import { CleanUps } from './clean-ups.js';
import { Contender } from './contender.js';
import { Contending, type PollingOptions } from './contending.js';
import { FirstQuestion, FirstQuestions } from './first-question.js';
import type { LeaseStore } from './lease-store.js';
import type { AcquireRequest, Guarantee, HealthSource, Lease, LockBackend, TtlLimits } from './lock-backend.js';
import { assertTtl } from './lock-options.js';

const CLOSED =
  'the backend is closed, by the lock service or the application that owned it: give a factory, such as redis({ url }), to each new one';

/** Makes a `LockBackend` of a `LeaseStore`: waiting, lost replies, late replies and giving up, written once. */
export class PollingBackend implements LockBackend {
  readonly name: string;
  readonly ttlLimits?: TtlLimits;
  readonly endsWithConnection?: boolean;
  readonly keepsOrder?: boolean;
  readonly start?: () => Promise<void>;
  readonly isHeldBy?: (key: string, owner: string) => Promise<boolean>;
  readonly health?: HealthSource;
  readonly #contending: Contending;
  readonly #unanswered = new FirstQuestions();
  readonly #cleanUps: CleanUps;
  #closed = false;

  constructor(
    private readonly store: LeaseStore,
    options: PollingOptions = {},
  ) {
    this.#cleanUps = new CleanUps(store);
    this.name = store.name;
    if (store.ttlLimits) this.ttlLimits = store.ttlLimits;
    if (store.keepsOrder === true) this.keepsOrder = true;
    if (store.endsWith === 'connection') this.endsWithConnection = true;
    this.#contending = new Contending(store, this.#cleanUps.add, options);
    if (store.start) this.start = store.start.bind(store);
    if (store.isHeldBy) this.isHeldBy = store.isHeldBy.bind(store);
    if (store.health) this.health = store.health;
  }

  get guarantee(): Guarantee {
    return this.store.guarantee;
  }

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
