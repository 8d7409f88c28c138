import { jest } from '@jest/globals';
import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { describeWanted, freePort } from '../../support/index.js';
import { ZookeeperWorld } from './zookeeper-world.js';

describeWanted(['zookeeper'], '%s: the start, and what health says then', () => {
  const world = ZookeeperWorld.shared();

  it.each<[string, number, RegExp | undefined]>([
    ['a session as asked for', 12_000, undefined],
    ['a session of less than six usual ticks', 11_999, /^a session of 11999 ms should be 6 ticks/u],
    ['a session that the server makes longer', 100, /^the server has made a session of 200 ms of the .* 100: .*ticks/u],
    ['a session that the server makes shorter', 300_000, /^the server has made a session of 120000 ms of[^;]*$/u],
  ])('%s: an operator is told what to change, if anything', async (_what, sessionTtlMs, detail) => {
    const service = world.service({ sessionTtlMs });
    await service.start();
    const expected = { status: 'up', ...(detail ? { detail: expect.stringMatching(detail) } : {}) };
    expect(service.health).toEqual(expected);
  });

  it('a server that is not there is no reason not to start, and shows', async () => {
    const failures: string[] = [];
    const observers = [{ backendFailed: ({ error }: { error: unknown }) => failures.push(String(error)) }];
    const service = world.service({ connectString: `127.0.0.1:${await freePort()}` }, { observers });
    await service.start();
    expect(service.health).toEqual({ status: 'down', detail: expect.stringContaining('ECONNREFUSED') });
    expect(failures.join()).toContain('ECONNREFUSED');
  });

  it('a client that is not installed stops the start', async () => {
    jest.unstable_mockModule('node-zookeeper-client', () => {
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    });
    const failure = await world
      .service()
      .start()
      .catch((error: unknown) => error);
    jest.unstable_unmockModule('node-zookeeper-client');
    expect(failure).toBeInstanceOf(LockConfigurationError);
    expect(String(failure)).toContain('npm install node-zookeeper-client@1.1.3');
  });
});
