import { type DynamicModule, Module } from '@nestjs/common';
import type { LockServiceOptions } from '../core/index.js';
import { DistributedLockModule } from '../nest/module/distributed-lock.module.js';
import { ManualClock } from './manual-clock.js';
import { TestLockBackend } from './test-lock-backend.js';

export interface LockTestingOptions extends Omit<LockServiceOptions, 'clock'> {
  /**
   * Clock of the locks: `manual` stands still until the test moves it by `ManualClock`; `real` runs.
   * @default 'manual'
   */
  clock?: 'manual' | 'real';
  /** Names of further backends. @default [] */
  backends?: readonly string[];
}

/** Returns the token of a backend's `TestLockBackend`: the class itself for the default backend. */
export function getTestLockBackendToken(backend = 'default'): typeof TestLockBackend | string {
  return backend === 'default' ? TestLockBackend : `TestLockBackend(${backend})`;
}

/**
 * Replaces `DistributedLockModule` in tests of parts of an application. A test of the whole application overrides
 * `DISTRIBUTED_LOCK_OPTIONS` instead. The module provides `TestLockBackend`, to make requests fail, and `ManualClock`,
 * to move time. `shutdownGraceMs` is 0 by default, because a longer one would not end while time stands still.
 */
@Module({})
export class LockTestingModule {
  /** @throws LockConfigurationError */
  static forRoot({ clock = 'manual', backends = [], ...options }: LockTestingOptions = {}): DynamicModule {
    const clockOption = clock === 'manual' ? { clock: new ManualClock() } : {};
    const defaultBackend = new TestLockBackend(clockOption);
    const namedBackends = backends.map((name) => [name, new TestLockBackend(clockOption)] as const);
    const providers = [
      ...(clockOption.clock ? [{ provide: ManualClock, useValue: clockOption.clock }] : []),
      { provide: TestLockBackend, useValue: defaultBackend },
      ...namedBackends.map(([name, backend]) => ({ provide: getTestLockBackendToken(name), useValue: backend })),
    ];
    const allBackends = { ...Object.fromEntries(namedBackends), default: defaultBackend };
    return {
      module: LockTestingModule,
      global: true,
      imports: [
        DistributedLockModule.forRoot({ shutdownGraceMs: 0, ...options, ...clockOption, backends: allBackends }),
      ],
      providers,
      exports: providers.map(({ provide }) => provide),
    };
  }
}
