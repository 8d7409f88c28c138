import { jest } from '@jest/globals';
import { type ClientHttp2Session, connect } from 'node:http2';
import { describeWanted } from '../../support/wanted-backends.js';
import { EtcdWorld, lineOf } from './etcd-world.js';

/** Streams that are left on the connection. */
const STREAMS = 20;

describeWanted(['etcd'], '%s: a connection that has used all its stream identifiers', () => {
  const world = EtcdWorld.shared();

  it('is replaced by another one, without a failed request or a lost lock', async () => {
    const anySession = connect(world.proxiedUrl);
    const prototype = Object.getPrototypeOf(anySession) as ClientHttp2Session;
    anySession.destroy();
    const failures: unknown[] = [];
    const observers = [
      {
        backendFailed: ({ error }: { readonly error: unknown }) => void failures.push(error),
        lost: () => void failures.push('lost'),
      },
    ];
    const service = await world.proxied({ sessionTtlMs: 30_000, requestTimeoutMs: 10_000 }, { observers });
    const lock = await service.acquire('held');
    const busy = await world.service().acquire('busy');
    const waiting = service.acquire('busy', { waitMs: 60_000 });
    await lineOf(world, 'busy', 2);
    const request = jest.spyOn(prototype, 'request').mockImplementationOnce(function (
      this: ClientHttp2Session,
      ...args: Parameters<ClientHttp2Session['request']>
    ) {
      // A client's identifiers are odd, and end at 2^31 - 1.
      Reflect.apply(Reflect.get(this, 'setNextStreamID'), this, [2 ** 31 + 1 - 2 * STREAMS]);
      return this.request(...args);
    });
    try {
      for (let round = 0; round < STREAMS; round += 1) await service.withLock(`key-${round}`, () => undefined);
    } finally {
      request.mockRestore();
    }
    expect(failures).toEqual([]);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await busy.release();
    await (await waiting).release();
  });
});
