import {
  LockBackendError,
  LockConfigurationError,
  type LockEvents,
  LockService,
  LockBackend,
} from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from '../../lib/backends/memory/lease-store.js';

type Failure = LockEvents['backendFailed'];

function starting(start?: () => Promise<void>): { service: LockService; failures: Failure[] } {
  const failures: Failure[] = [];
  const backend: LockBackend = new LockBackend(Object.assign(new MemoryLeaseStore(), start && { start }));
  const service = new LockService(backend, { observers: [{ backendFailed: (event) => void failures.push(event) }] });
  return { service, failures };
}

describe('LockService.start', () => {
  it('asks the backend, if that has anything to look at', async () => {
    await starting().service.start();
    let looked = 0;
    await starting(async () => void (looked += 1)).service.start();
    expect(looked).toBe(1);
  });

  it('rejects with what can never work', async () => {
    const error = new LockConfigurationError('the table is missing', 'tableName');
    const { service, failures } = starting(() => Promise.reject(error));
    await expect(service.start()).rejects.toBe(error);
    expect(failures).toEqual([]);
  });

  it('tells observers, and nobody else, of a backend that does not answer', async () => {
    const { service, failures } = starting(() => Promise.reject(new Error('connection refused')));
    await service.start();
    expect(failures).toEqual([{ key: '', operation: 'start', error: expect.any(LockBackendError) }]);
    expect(String(failures[0]?.error)).toMatch(/could not start: connection refused/u);
    await (await service.acquire('k')).release();
  });
});
