import { jest } from '@jest/globals';
import client from 'node-zookeeper-client';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import type { ConnectionManager } from '../../../lib/backends/zookeeper/transport/wire.js';
import { describeWanted, eventually, failureOf, handled } from '../../support/index.js';
import { RefusingProxy } from './refusing-proxy.js';
import { ZookeeperWorld } from './zookeeper-world.js';

const NUMBERS = 2 ** 31;
const NO_AUTH = -102;

describeWanted(['zookeeper'], '%s: requests that cannot be sent, or are refused', () => {
  afterEach(() => void jest.restoreAllMocks());
  const world = ZookeeperWorld.shared({ sessionTtlMs: 60_000 });

  it('after two to the power of 31 requests on a connection the next ones go over a new one, and nothing fails', async () => {
    const events: string[] = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ backendFailed: note('failed'), lost: note('lost') }];
    const { clients } = spyOnClients();
    const service = world.service({}, { observers });
    const [held, key] = [await service.acquire(world.key()), world.key()];
    Object.assign(clients()[0] ?? {}, { xid: NUMBERS - 100 });
    for (let i = 0; i < 60; i += 1) await service.withLock(key, () => undefined);
    expect(events).toEqual([]);
    expect(held.isHeld).toBe(true);
    expect(clients()).toHaveLength(2);
    await expect(world.service().tryAcquire(key)).resolves.not.toBeNull();
  });

  it('what the client throws at ends the connection, and the release it fell upon is carried out over the next', async () => {
    const { spy, clients } = spyOnClients();
    const service = world.service();
    const key = world.key();
    const lock = await service.acquire(key);
    spy.mockImplementationOnce(() => {
      throw new RangeError('the value is out of range');
    });
    await lock.release();
    const next = await world.service().acquire(key, { waitMs: 5_000 });
    expect(clients().length).toBeGreaterThan(1);
    await next.release();
  });

  it.each([
    ['THROTTLED_OP', -127],
    ['NOT_READONLY', -119],
    ['a code that nobody knows', -9_999],
  ])('a release that is refused with %s is repeated until the key is free, and told at once', async (_what, code) => {
    const failures: string[] = [];
    const observers = [{ backendFailed: ({ error }: { error: unknown }) => failures.push(String(error)) }];
    const { proxy, service } = await refusing(observers);
    const key = world.key();
    const lock = await service.acquire(key);
    const waiting = handled(world.service().acquire(key, { waitMs: 10_000 }));
    await eventually(async () => expect(await world.queue(key)).toHaveLength(2));
    proxy.refuse(code, 5);
    await lock.release();
    expect(failures).toHaveLength(1);
    expect(failures[0]).toContain('the server refused to delete a node');
    await (await waiting).release();
    expect(proxy.refused).toBe(5);
    expect(service.health.status).toBe('up');
  });

  it('a place in line that the server is too busy to take away is no reason to say more than "it is held"', async () => {
    const { proxy, service } = await refusing();
    const key = world.key();
    const lock = await world.service().acquire(key);
    proxy.refuse(-127, 3);
    await expect(service.tryAcquire(key)).resolves.toBeNull();
    await eventually(async () => expect(await world.queue(key)).toHaveLength(1));
    expect(proxy.refused).toBe(3);
    await lock.release();
  });

  it('a refusal that will not pass is asked for once', async () => {
    const { proxy, service } = await refusing();
    const key = world.key();
    const lock = await world.service().acquire(key);
    proxy.refuse(NO_AUTH, 5);
    await expect(failureOf(service.tryAcquire(key))).resolves.toBeInstanceOf(LockBackendError);
    await service.close();
    expect(proxy.refused).toBe(1);
    await lock.release();
  });

  const refusing = async (observers: readonly object[] = []) => {
    const proxy = world.closing(await RefusingProxy.start(world.server));
    const service = world.service({ connectString: `127.0.0.1:${proxy.port}` }, { observers });
    await service.withLock(world.key(), () => undefined);
    return { proxy, service };
  };
});

/** The inner part of each client that something is sent over. */
function spyOnClients() {
  const { connectionManager } = client.createClient('nobody', { sessionTimeout: 1_000, retries: 0 });
  const prototype: ConnectionManager = Object.getPrototypeOf(connectionManager);
  const spy = jest.spyOn(prototype, 'queue');
  return { spy, clients: () => [...new Set(spy.mock.contexts)] };
}
