import { type DynamicModule, Module } from '@nestjs/common';
import type { LockServiceOptions } from '../core/index.js';
import { DistributedLockModule } from '../nest/distributed-lock.module.js';
import { ManualClock } from './manual-clock.js';
import { TestLockBackend } from './test-lock-backend.js';

/**
 * Stands in for `DistributedLockModule` in the tests of an application. Get `TestLockBackend` from it to let things fail, and
 * `ManualClock` to move time, which stands still from the beginning.
 */
@Module({})
export class LockTestingModule {
  /** @throws LockConfigurationError */
  static forRoot(options: Omit<LockServiceOptions, 'clock'> = {}): DynamicModule {
    const clock = new ManualClock();
    const backend = new TestLockBackend({ clock });
    const providers = [
      { provide: ManualClock, useValue: clock },
      { provide: TestLockBackend, useValue: backend },
    ];
    return {
      module: LockTestingModule,
      global: true,
      imports: [DistributedLockModule.forRoot({ shutdownGraceMs: 0, ...options, backend, clock })],
      providers,
      exports: [TestLockBackend, ManualClock],
    };
  }
}
