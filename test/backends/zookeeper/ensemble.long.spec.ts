import { LockBackendError, LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { zookeeper } from 'nestjs-distributed-lock/zookeeper';
import {
  aborted,
  atLeastMs,
  closeAfterEach,
  eventually,
  failureOf,
  FaultProxy,
  SLACK_MS,
  timeLimitOf,
} from '../../support/index.js';
import { ZookeeperEnsemble } from '../../servers/zookeeper-ensemble.js';
import type { ZookeeperServer } from '../../servers/zookeeper-server.js';
import { describeWanted } from '../../support/wanted-backends.js';

/** Longer than three servers of a busy machine take to agree on a leader. The servers allow two minutes. */
const ELECTION_SESSION_MS = Math.min(timeLimitOf(20_000), 100_000);

describeWanted(['zookeeper-ensemble'], '%s', () => {
  let ensemble: ZookeeperEnsemble;
  const keep = closeAfterEach();
  let keys = 0;
  beforeAll(async () => {
    ensemble = await ZookeeperEnsemble.start({ jvm: ['-Dreadonlymode.enabled=true'] });
  });
  afterEach(() => ensemble.complete());
  afterAll(() => ensemble.stop());

  const service = (connectString: string, sessionTtlMs: number, options?: LockServiceOptions): LockService =>
    keep(new LockService(zookeeper({ connectString, sessionTtlMs }), options));
  const key = (): string => `key-${(keys += 1)}`;
  const aFollower = async (): Promise<ZookeeperServer> => {
    const [follower] = await ensemble.followers();
    if (!follower) throw new Error('an ensemble of three has followers');
    return follower;
  };

  it('is trusted as a consensus, one server as its disk', () => {
    expect(zookeeper({ connectString: ensemble.connectString })().guarantee).toBe('consensus');
    expect(zookeeper({ connectString: 'localhost:2181' })().guarantee).toBe('durable');
  });

  it('a follower freezes: whoever is connected to it goes to the next server, with the same session', async () => {
    const events: string[] = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
    const follower = await aFollower();
    const others = ensemble.servers.filter((server) => server !== follower);
    const connectString = [follower, ...others].map(({ address }) => address).join(',');
    const held = key();
    const ours = await connectedTo(follower, () => service(connectString, timeLimitOf(6_000), { observers }), held);
    const lock = await ours.acquire(held);
    const other = service(connectString, timeLimitOf(6_000));
    await follower.whileFrozen(async () => {
      await eventually(() => events.includes('safe'), { withinMs: 6_000 });
      expect(events).toEqual(['jeopardy', 'safe']);
      await expect(other.tryAcquire(held)).resolves.toBeNull();
      await lock.release();
      await (await other.acquire(held)).release();
    });
  });

  it('the leader is killed: the holder keeps its lock, those who wait their place, and tokens grow', async () => {
    const leader = await ensemble.leader();
    const [ours, theirs] = [
      service(ensemble.connectString, ELECTION_SESSION_MS),
      service(ensemble.connectString, ELECTION_SESSION_MS),
    ];
    const held = key();
    const lock = await ours.acquire(held);
    const waiting = theirs.acquire(held, { waitMs: timeLimitOf(40_000) });
    const untouched = await theirs.acquire(key());
    await leader.kill();
    await eventually(() => ours.withLock(key(), () => 'in', { waitMs: timeLimitOf(500) }), { withinMs: 20_000 });
    expect(lock.isHeld).toBe(true);
    expect(untouched.isHeld).toBe(true);
    await lock.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    // A new leader counts from a new epoch on, in the upper half of the number.
    expect(next.fencingToken).toBeLessThan(2n ** 63n);
    await next.release();
    await leader.launch();
  });

  it('two of three die: no lock without a majority, what is held is lost by our own clock, and all is well when they are back', async () => {
    const sessionTtlMs = atLeastMs(3_000);
    const ours = service(ensemble.connectString, sessionTtlMs);
    const held = key();
    const lock = await ours.acquire(held);
    const toldAt = aborted(lock.signal);
    const [one, two] = ensemble.servers;
    await Promise.all([one?.kill(), two?.kill()]);
    const killedAt = performance.now();
    const error = await failureOf(ours.acquire(key(), { waitMs: 500 }));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(performance.now() - killedAt).toTakeLessThan(500 + SLACK_MS);
    expect((await toldAt) - killedAt).toTakeLessThan((sessionTtlMs * 2) / 3 + SLACK_MS);
    // The one that is left only reads now, for clients that want no more.
    await eventually(async () => expect(await ensemble.servers[2]?.ask('srvr')).toContain('Mode: read-only'));
    await expect(failureOf(ours.tryAcquire(key()))).resolves.toBeInstanceOf(LockBackendError);
    await Promise.all([one?.launch(), two?.launch()]);
    await eventually(() => ours.withLock(held, () => 'in', { waitMs: timeLimitOf(1_000) }), { withinMs: 10_000 });
  });

  it('Z4, Z7: connections break and sessions move from server to server: never two inside', async () => {
    const proxies = await Promise.all(ensemble.servers.map((server) => FaultProxy.start(server)));
    const connectString = proxies.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const all = [
      service(connectString, timeLimitOf(4_000)),
      service(connectString, timeLimitOf(4_000)),
      service(connectString, timeLimitOf(4_000)),
    ];
    const hot = key();
    let [inside, most, visits] = [0, 0, 0];
    const visit = async (place: number): Promise<void> => {
      const lock = await all[place % 3]?.acquire(hot, { waitMs: timeLimitOf(20_000) });
      inside += 1;
      most = Math.max(most, inside);
      proxies[place % 3]?.reset();
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside -= 1;
      visits += 1;
      await lock?.release();
    };
    await Promise.all(Array.from({ length: 30 }, (_, place) => visit(place)));
    expect({ most, visits }).toEqual({ most: 1, visits: 30 });
    await Promise.all(all.map((one) => one.close()));
    await Promise.all(proxies.map((proxy) => proxy.close()));
  });
});

/** A service that happens to be connected to this server: they begin with a random one. */
async function connectedTo(server: ZookeeperServer, open: () => LockService, key: string): Promise<LockService> {
  for (let attempt = 0; attempt < 30; attempt += 1) {
    const before = await server.metric('zk_num_alive_connections');
    const service = open();
    await service.withLock(key, () => undefined);
    if ((await server.metric('zk_num_alive_connections')) > before) return service;
    await service.close();
  }
  throw new Error('never connected to that server');
}
