import type { LockService, Leadership, LockHandle } from 'nestjs-distributed-lock/core';
import type { ManualClock } from 'nestjs-distributed-lock/testing';
import { ServiceWorld } from './service-world.js';

export const OFFICE_TTL_MS = 30_000;

/** Work that goes on until its test ends it, and notes when it begins, hears its signal and ends. */
export class Office {
  readonly notes: string[] = [];
  readonly terms: LockHandle[] = [];
  inside = 0;
  most = 0;
  #end: (outcome: Error | undefined) => void = () => undefined;

  readonly work = async (term: LockHandle): Promise<void> => {
    this.terms.push(term);
    this.notes.push('work');
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    term.signal.addEventListener('abort', () => this.notes.push('signal'));
    try {
      const error = await new Promise<Error | undefined>((resolve) => (this.#end = resolve));
      if (error) throw error;
    } finally {
      this.inside -= 1;
      this.notes.push('ended');
    }
  };

  /** As work that heeds its signal. */
  readonly obedient = (term: LockHandle): Promise<void> => {
    term.signal.addEventListener('abort', () => this.end());
    return this.work(term);
  };

  end(outcome?: Error): void {
    this.#end(outcome);
  }

  get reasons(): unknown[] {
    return this.terms.map(({ signal }) => (signal.aborted ? signal.reason.reason : undefined));
  }
}

/** A service that stands for the office of `chief`, in virtual time. */
export class OfficeWorld {
  readonly world = new ServiceWorld();
  readonly clock: ManualClock = this.world.clock;
  readonly office = new Office();
  /** How each term ended. */
  readonly ends: unknown[] = [];
  readonly locks = this.world.service({
    observers: [{ termEnded: ({ reason, error }) => void this.ends.push(error ?? reason) }],
  });

  readonly lead = (service: LockService = this.locks, options: Parameters<LockService['lead']>[2] = {}): Leadership =>
    service.lead('chief', this.office.work, { ttlMs: OFFICE_TTL_MS, ...options });
}
