import { jest } from '@jest/globals';
import { LockService, ReportedHealth } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';

it('a health goes on when its listeners throw or reject', async () => {
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const health = new ReportedHealth();
  const statuses: string[] = [];
  const healthChanged = ({ status }: { status: string }): void => void statuses.push(status);
  await using locks = new LockService(Object.assign(new MemoryLeaseStore(), { health }), {
    observers: [{ healthChanged }],
  });
  const failLater = (): unknown => Promise.reject(new Error('of an async listener'));
  for (const source of [health, locks.backend.health]) {
    source.onChange(() => {
      throw new Error('of a listener');
    });
    source.onChange(failLater);
  }
  const heard: string[] = [];
  locks.backend.health.onChange(({ status }) => void heard.push(status));
  health.report('down');
  health.report('up');
  await new Promise((resolve) => setImmediate(resolve));
  expect(heard).toEqual(['down', 'up']);
  expect(statuses).toEqual(['down', 'up']);
  // Two changes, each told to two listeners of each source.
  expect(warned).toHaveBeenCalledTimes(8);
  expect(warned).toHaveBeenCalledWith('a listener of health threw: Error: of an async listener');
  warned.mockRestore();
});
