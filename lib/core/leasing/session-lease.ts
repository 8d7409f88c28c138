import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import type { Contending } from './contending.js';
import type { Question } from './question.js';
import { StoreLease } from './store-lease.js';
import type { Timer } from '../time/timers.js';

/** Whether the leases of `store` outlive their time, because something that they share lives on. */
export function hasSessions({ endsWith = 'ttl' }: Pick<LeaseStore, 'endsWith'>): boolean {
  return endsWith !== 'ttl';
}

export function leaseOf(
  { store, cleanUp }: Contending,
  question: Question,
  granted: GrantedLease,
  queued = false,
): StoreLease {
  const Kind = hasSessions(store) ? SessionLease : StoreLease;
  return new Kind(store, question, granted, queued, cleanUp);
}

/** The session would keep it: a lease that nobody renews is given back at its end. */
export class SessionLease extends StoreLease {
  #renewedAt = this.sentAt;
  #end = this.#watchEnd();

  override async renew(): Promise<boolean> {
    const askedAt = this.clock.now();
    const ours = await super.renew();
    if (ours) this.#renewedAt = askedAt;
    return ours;
  }

  override release(): Promise<void> {
    this.#end.cancel();
    return super.release();
  }

  get #endsAt(): number {
    return this.#renewedAt + this.ttlMs;
  }

  #watchEnd(): Timer {
    return this.clock.schedule(this.#endsAt - this.clock.now(), () => this.#onTime(), { background: true });
  }

  #onTime(): void {
    if (this.clock.now() < this.#endsAt) this.#end = this.#watchEnd();
    else this.release().catch(() => undefined);
  }
}
