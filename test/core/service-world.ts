import { type LockEvents, LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';

/** A lock service on virtual time, and all that it told its observers. */
export class ServiceWorld {
  readonly clock = new ManualClock();
  readonly backend = new TestLockBackend({ clock: this.clock });
  readonly events: [keyof LockEvents, unknown][] = [];
  readonly locks = this.service();

  /** Another one, on the same backend. */
  service(options: LockServiceOptions = {}): LockService {
    const record = (name: keyof LockEvents) => (event: unknown) => void this.events.push([name, event]);
    return new LockService(this.backend, {
      clock: this.clock,
      label: 'api-2',
      observers: [
        {
          waiting: record('waiting'),
          acquired: record('acquired'),
          released: record('released'),
          lost: record('lost'),
          jeopardy: record('jeopardy'),
          safe: record('safe'),
          backendFailed: record('backendFailed'),
        },
      ],
      ...options,
    });
  }

  get names(): string[] {
    return this.events.map(([name]) => name);
  }
}
