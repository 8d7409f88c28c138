import type { Deadline } from '../time/deadline.js';
import type { AcquireRequest, Place } from '../leasing/lease-request.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import type { ResolvedOptions } from '../lock-options.js';

/** Where an acquisition stands in its process. */
export interface AcquisitionListener {
  readonly metadata: HolderMetadata;
  /** Whether the next caller of the key takes the place in the backend's line. */
  passPlace(acquisition: Acquisition): boolean;
  blockedBy(key: string, by: Holder | Error | undefined): void;
}

/** A caller's wish for a key, and the request that asks the backend for it. */
export class Acquisition implements AcquireRequest, Place {
  owner = '';
  inherited = false;
  yields = false;
  /** The next caller has our place, and our turn with it. */
  passed = false;

  constructor(
    readonly key: string,
    readonly options: ResolvedOptions,
    readonly since: number,
    readonly deadline: Deadline,
    private readonly listener: AcquisitionListener,
  ) {}

  get ttlMs(): number {
    return this.options.ttlMs + this.options.lockDelayMs;
  }

  get lockDelayMs(): number {
    return this.options.lockDelayMs;
  }

  get signal(): AbortSignal | undefined {
    return this.options.signal;
  }

  get metadata(): HolderMetadata {
    return this.listener.metadata;
  }

  get place(): Place {
    return this;
  }

  pass(): boolean {
    this.passed ||= this.listener.passPlace(this);
    return this.passed;
  }

  blockedBy(by: Holder | Error | undefined): void {
    this.listener.blockedBy(this.key, by);
  }
}
