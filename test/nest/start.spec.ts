import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { DistributedLockModule, type LeaseStore, LockConfigurationError } from 'nestjs-distributed-lock';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { context } from './apps.js';

function backend(name: string, events: string[], start: () => Promise<void>): LeaseStore {
  const inner = new MemoryLeaseStore();
  const end = inner.close.bind(inner);
  const close = async (): Promise<void> => {
    events.push(`${name} closed`);
    await end();
  };
  return Object.assign(inner, { start, close });
}

it('the application starts its backends once every module is initialised, and before it listens', async () => {
  const events: string[] = [];
  @Injectable()
  class Migrations implements OnModuleInit {
    async onModuleInit(): Promise<void> {
      await new Promise(setImmediate);
      events.push('migrated');
    }
  }
  const start = async (): Promise<void> => {
    await new Promise(setImmediate);
    events.push('started');
  };
  const module = DistributedLockModule.forRoot(backend('one', events, start));
  await context({ imports: [module], providers: [Migrations] });
  expect(events).toEqual(['migrated', 'started']);
});

it('a backend that can never work stops the application, and all of them are closed', async () => {
  const events: string[] = [];
  const error = new LockConfigurationError('the table is missing', 'tableName');
  const backends = {
    default: backend('one', events, async () => undefined),
    ledger: backend('two', events, () => Promise.reject(error)),
  };
  await expect(context({ imports: [DistributedLockModule.forRoot({ backends })] })).rejects.toBe(error);
  expect(events.toSorted()).toEqual(['one closed', 'two closed']);
});

it('a backend that does not answer lets the application start', async () => {
  const down = backend('one', [], () => Promise.reject(new Error('connection refused')));
  let bootstrapped = false;
  @Injectable()
  class Other implements OnApplicationBootstrap {
    onApplicationBootstrap(): void {
      bootstrapped = true;
    }
  }
  await context({ imports: [DistributedLockModule.forRoot(down)], providers: [Other] });
  expect(bootstrapped).toBe(true);
});
