import { Deadline, LockBackendError, NotSentError } from '../../../lib/core/index.js';
import { RequestLine } from '../../../lib/backends/etcd/transport/request-line.js';
import { describeWanted, failureOf } from '../../support/index.js';
import { EtcdWorld } from './etcd-world.js';

/** Requests that run at a time. */
const AT_A_TIME = 64;
const REQUEST_TIMEOUT_MS = 300;

describeWanted(['etcd'], 'tries without waiting while etcd is silent', () => {
  it('most of very many are never sent, also later, instead of each waiting for those before it', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxied({ requestTimeoutMs: REQUEST_TIMEOUT_MS, sessionTtlMs: 30_000 });
    const sent = new Set<string>();
    const end = world.proxy.onRequest((chunk) => {
      for (const [name] of chunk.toString('latin1').matchAll(/lock\/try-\d+\//gu)) sent.add(name);
    });
    world.proxy.pause();
    const tries = Array.from({ length: 10 * AT_A_TIME }, (_, index) => failureOf(service.tryAcquire(`try-${index}`)));
    const errors = await Promise.all(tries);
    const unsent = errors.filter((error) => error instanceof Error && error.cause instanceof NotSentError);
    expect(errors.every((error) => error instanceof LockBackendError)).toBe(true);
    // Two rounds, and a third for those who came late on a busy machine.
    expect(sent.size).toBeLessThanOrEqual(3 * AT_A_TIME);
    expect(unsent.length).toBe(errors.length - sent.size);
    world.proxy.resume();
    await (await service.acquire('after', { waitMs: 10_000 })).release();
    expect(sent.size).toBe(errors.length - unsent.length);
    end();
  });

  it('a caller that has given up before its request is sent leaves nothing behind', async () => {
    await using world = await EtcdWorld.start();
    const { store } = world.backend();
    const tryAcquire = (onSend: () => boolean) =>
      store.tryAcquire('k', 'owner', 1_000, { host: 'h', pid: 1 }, { deadline: Deadline.after(0), onSend });
    await expect(failureOf(tryAcquire(() => false))).resolves.toBeInstanceOf(NotSentError);
    expect(await world.places('k')).toEqual([]);
    await expect(tryAcquire(() => true)).resolves.toMatchObject({ acquired: true });
    expect(await world.places('k')).toHaveLength(1);
  });

  it('who waits in line is sent away when the client is closed', async () => {
    const line = new RequestLine(600_000);
    const sent: number[] = [];
    const send = (index: number) => () => {
      sent.push(index);
      return new Promise<void>(() => undefined);
    };
    for (let index = 0; index < AT_A_TIME; index += 1) void line.run(send(index));
    const waiting = failureOf(line.run(send(AT_A_TIME)));
    line.close();
    await expect(waiting).resolves.toBeInstanceOf(NotSentError);
    await expect(failureOf(line.run(send(AT_A_TIME)))).resolves.toBeInstanceOf(NotSentError);
    expect(sent).toHaveLength(AT_A_TIME);
  });
});
