import { type DynamicModule, Module } from '@nestjs/common';
import type { LockServiceOptions } from '../core/index.js';
import { DistributedLockModule } from '../nest/module/distributed-lock.module.js';
import { ManualClock } from './manual-clock.js';
import { TestLockBackend } from './test-lock-backend.js';

export interface LockTestingOptions extends Omit<LockServiceOptions, 'clock'> {
  /** `manual`: time stands still until the test moves it by `ManualClock`. `real`: time goes on. @default 'manual' */
  clock?: 'manual' | 'real';
  /** The names of further backends. @default [] */
  backends?: readonly string[];
}

/** The token of a named backend's `TestLockBackend`: the class itself for the default one. */
export function getTestLockBackendToken(backend = 'default'): typeof TestLockBackend | string {
  return backend === 'default' ? TestLockBackend : `TestLockBackend(${backend})`;
}

/**
 * Stands in for `DistributedLockModule` in tests of parts of an application; a test of the whole application overrides
 * `DISTRIBUTED_LOCK_OPTIONS` instead. Get `TestLockBackend` from it to let things fail, and `ManualClock` to move time.
 * The grace time of a shutdown is 0 unless given: while time stands still it would not end.
 */
@Module({})
export class LockTestingModule {
  /** @throws LockConfigurationError */
  static forRoot({ clock = 'manual', backends = [], ...options }: LockTestingOptions = {}): DynamicModule {
    const time = clock === 'manual' ? { clock: new ManualClock() } : {};
    const main = new TestLockBackend(time);
    const others = backends.map((name) => [name, new TestLockBackend(time)] as const);
    const providers = [
      ...(time.clock ? [{ provide: ManualClock, useValue: time.clock }] : []),
      { provide: TestLockBackend, useValue: main },
      ...others.map(([name, backend]) => ({ provide: getTestLockBackendToken(name), useValue: backend })),
    ];
    const named = { ...Object.fromEntries(others), default: main };
    return {
      module: LockTestingModule,
      global: true,
      imports: [DistributedLockModule.forRoot({ shutdownGraceMs: 0, ...options, ...time, backends: named })],
      providers,
      exports: providers.map(({ provide }) => provide),
    };
  }
}
