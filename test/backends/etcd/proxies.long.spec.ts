import { describeWanted, eventually, failureOf, throughout, timeLimitOf } from '../../support/index.js';
import { EtcdWorld, lineOf, wholeSecondsOf } from './etcd-world.js';
import { Http2Proxy, type OwnAnswer, pageOf } from './http2-proxy.js';

const GRPC = { ':status': 200, 'content-type': 'application/grpc' };
const STREAM_ENDS: readonly (readonly [name: string, answer: OwnAnswer])[] = [
  ['is forbidden', pageOf(403)],
  ['has no server', pageOf(503)],
  ['is unavailable', { headers: GRPC, trailers: { 'grpc-status': '14', 'grpc-message': 'no streams' } }],
  ['ends at once, and all is well', { headers: GRPC, trailers: { 'grpc-status': '0' } }],
];

describeWanted(['etcd'], 'proxies in front of etcd', () => {
  it.each([
    ['FAILED_PRECONDITION', '9', 'etcdserver: rpc not supported for learner'],
    ['UNIMPLEMENTED', '12', 'unknown service etcdserverpb.Lease'],
  ])('the answer of one member is never final: %s', async (_code, status, message) => {
    await using world = await EtcdWorld.start();
    await using learner = await Http2Proxy.start(world.server.urls[0] ?? '');
    learner.answer = () => ({ headers: GRPC, trailers: { 'grpc-status': status, 'grpc-message': message } });
    const endpoints = [learner.url, ...world.server.urls];
    // The start asks all for their cluster.
    const asked = (): number => Object.values({ ...learner.counts, Range: 0 }).reduce((a, b) => a + b, 0);
    // Which member is asked first is left to chance.
    while (asked() === 0) {
      const service = world.service({ endpoints });
      await service.start();
      await (await service.acquire('k')).release();
      await service.close();
    }
    const refused = world.service({ endpoints: [learner.url, learner.url, `${learner.url}/`], patienceMs: 300 });
    const error = await failureOf(refused.start());
    expect(String(error)).toContain(message);
    expect(String(await failureOf(refused.acquire('k')))).toContain(message);
  });

  it.each([429, 404, 502, 503, 504])('a way that answers HTTP %d is left for another one', async (status) => {
    await using world = await EtcdWorld.start();
    await using proxy = await Http2Proxy.start(world.server.urls[0] ?? '');
    proxy.answer = () => pageOf(status);
    const said: string[] = [];
    const observers = [{ healthChanged: ({ detail = '' }) => void said.push(detail) }];
    // Which one is asked first is left to chance.
    while (proxy.counts['LeaseGrant'] === undefined) {
      const service = world.service(
        { endpoints: [proxy.url, ...world.server.urls], sessionTtlMs: 10_000 },
        { observers },
      );
      await (await service.acquire('k', { waitMs: 5_000 })).release();
      await service.close();
    }
    expect(said.join()).toContain(`HTTP ${status}`);
    // Nobody has asked it twice.
    expect(proxy.counts['LeaseGrant']).toBe(1);
    expect(proxy.counts['Txn'] ?? 0).toBe(0);
  });

  it('the only way answers with a page: the error and the health say the HTTP status, or the content type', async () => {
    await using world = await EtcdWorld.start();
    await using proxy = await Http2Proxy.start(world.server.urls[0] ?? '');
    const service = world.service({ endpoints: proxy.url, patienceMs: 200 });
    proxy.answer = () => pageOf(503);
    expect(String(await failureOf(service.acquire('k')))).toContain('HTTP 503');
    proxy.answer = () => ({ headers: { ':status': 200, 'content-type': 'text/html' }, body: '<html>welcome</html>' });
    expect(String(await failureOf(service.acquire('k')))).toContain('"text/html"');
    expect(service.health).toMatchObject({ status: 'down', detail: expect.stringContaining('"text/html"') });
    proxy.answer = () => undefined;
    await (await service.acquire('k')).release();
    expect(service.health).toEqual({ status: 'up' });
  });

  it.each(STREAM_ENDS)('a stream %s: waiters look by themselves, and make no storm of it', async (_, answer) => {
    await using world = await EtcdWorld.start();
    await using proxy = await Http2Proxy.start(world.server.urls[0] ?? '');
    proxy.answer = (path) => (path.endsWith('/Watch') ? answer : undefined);
    const [ours, theirs] = [world.service(), world.service({ endpoints: proxy.url, sessionTtlMs: 10_000 })];
    const lock = await ours.acquire('k');
    const waiting = theirs.acquire('k', { waitMs: 20_000 });
    await lineOf(world, 'k', 2);
    await throughout(3_000, async () => expect(await world.places('k')).toHaveLength(2));
    // Pauses of 40, 80, 160, 320, 640 and 1,000 ms.
    expect(proxy.counts['Watch']).toBeLessThan(20);
    expect(proxy.counts['Txn']).toBeLessThan(25);
    expect(theirs.health.detail).toContain('waiters look every second');
    const since = performance.now();
    await lock.release();
    const next = await waiting;
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_500));
    await next.release();
    expect(theirs.health.status).toBe('up');
  });

  it('a way that works again: health no longer speaks of streams that end', async () => {
    await using world = await EtcdWorld.start();
    await using proxy = await Http2Proxy.start(world.server.urls[0] ?? '');
    proxy.answer = (path) => (path.endsWith('/Watch') ? pageOf(403) : undefined);
    const [ours, theirs] = [world.service(), world.service({ endpoints: proxy.url, sessionTtlMs: 10_000 })];
    const lock = await ours.acquire('k');
    const waiting = theirs.acquire('k', { waitMs: 30_000 });
    await eventually(() => expect(theirs.health.detail).toContain('HTTP 403'), { withinMs: 10_000 });
    proxy.answer = () => undefined;
    await eventually(() => expect(theirs.health).toEqual({ status: 'up' }), { withinMs: 10_000 });
    await lock.release();
    await (await waiting).release();
  });

  it('connections that are to be left after so many requests: nothing fails, and nothing is in jeopardy', async () => {
    await using world = await EtcdWorld.start();
    await using proxy = await Http2Proxy.start(world.server.urls[0] ?? '');
    proxy.requestsPerConnection = 50;
    const events: string[] = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ jeopardy: note('jeopardy'), lost: note('lost'), backendFailed: note('failed') }];
    const sessionTtlMs = wholeSecondsOf(3_000);
    const times = { sessionTtlMs, requestTimeoutMs: sessionTtlMs };
    const service = world.service({ endpoints: proxy.url, ...times }, { observers });
    const held = await Promise.all(Array.from({ length: 20 }, (_, index) => service.acquire(`held-${index}`)));
    const work = async (worker: number): Promise<void> => {
      for (let round = 0; round < 50; round += 1) await service.withLock(`k-${worker}-${round % 3}`, () => undefined);
    };
    await Promise.all(Array.from({ length: 8 }, (_, worker) => work(worker)));
    expect(proxy.counts['Txn']).toBeGreaterThan(800);
    expect(held.every(({ isHeld }) => isHeld)).toBe(true);
    expect(events).toEqual([]);
    expect(service.health).toEqual({ status: 'up' });
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('connections that are to be left: who waits is woken as before', async () => {
    await using world = await EtcdWorld.start();
    await using proxy = await Http2Proxy.start(world.server.urls[0] ?? '');
    proxy.requestsPerConnection = 10;
    const [ours, theirs] = [world.service(), world.service({ endpoints: proxy.url, sessionTtlMs: 10_000 })];
    for (let round = 0; round < 10; round += 1) {
      const lock = await ours.acquire('k', { waitMs: 0 });
      const waiting = theirs.acquire('k', { waitMs: 20_000 });
      await lineOf(world, 'k', 2);
      for (let i = 0; i < 5; i += 1) await (await theirs.acquire('other')).release();
      const since = performance.now();
      await lock.release();
      await (await waiting).release();
      expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_000));
    }
  });
});
