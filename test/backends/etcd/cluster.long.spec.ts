import { join } from 'node:path';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import { aborted, failureOf, handled, SLACK_MS, throughout } from '../../conformance/contract.js';
import type { EtcdMember } from '../../servers/etcd-server.js';
import {
  atLeastMs,
  describeWanted,
  eventually,
  RedisServer,
  serverToken,
  TemporaryDirectory,
  timeLimitOf,
} from '../../support/index.js';
import { FencedResource } from '../../support/fenced-resource.js';
import { hammer } from '../../support/harness-hammer.js';
import { loadHistory } from '../../support/history.js';
import { checkExclusion, checkResourceOrder, checkTokenOrder } from '../../support/history-checker.js';
import { EtcdWorld } from './etcd-world.js';

/** Whole seconds, as etcd has them. */
const TTL = { sessionTtlMs: Math.ceil(atLeastMs(3_000) / 1_000) * 1_000 };
/**
 * For holds that outlive their leader. An election takes up to two seconds by the defaults of etcd, and the first may
 * end in a tie. The last heartbeat before it may be a third of the TTL old.
 */
const ELECTION_TTL = { sessionTtlMs: TTL.sessionTtlMs + 4_000 };

describeWanted(['etcd-cluster'], 'a cluster of three', () => {
  afterEach(() => world.server.thaw());
  const world = EtcdWorld.shared({ members: 3 });
  /** On a busy machine an election may come that nobody asked for. */
  const untilLed = (): Promise<EtcdMember> => eventually(() => world.server.leader(), { withinMs: 10_000 });
  beforeEach(() => untilLed());
  afterEach(() => Promise.all(world.server.members.map((member) => member.launch())));

  it('E4: leader killed: nothing is lost, and others go on as soon as there is a new one', async () => {
    const [ours, theirs] = [world.service(ELECTION_TTL), world.service(ELECTION_TTL)];
    const lock = await ours.acquire('k');
    const leader = await untilLed();
    await leader.kill();
    const killedAt = performance.now();
    const other = await theirs.acquire('other', { waitMs: 20_000 });
    process.stdout.write(
      `etcd: first grant ${Math.round(performance.now() - killedAt)} ms after its leader was killed\n`,
    );
    await throughout(ELECTION_TTL.sessionTtlMs, async () => {
      expect(lock.isHeld).toBe(true);
      expect(await theirs.tryAcquire('k').catch(() => null)).toBeNull();
    });
    await lock.release();
    await (await theirs.acquire('k', { waitMs: 10_000 })).release();
    await other.release();
  });

  it('E4: leader killed while others wait: they keep their places', async () => {
    const [ours, theirs] = [world.service(ELECTION_TTL), world.service(ELECTION_TTL)];
    const lock = await ours.acquire('k');
    const waiting = handled(theirs.acquire('k', { waitMs: 30_000 }));
    const line = await eventually(async () => {
      const places = await world.places('k');
      expect(places).toHaveLength(2);
      return places;
    });
    await (await untilLed()).kill();
    await lock.release();
    const next = await waiting;
    expect(serverToken(next.fencingToken)).toBe(await world.tokenOf(line[1]));
    await next.release();
  });

  it('E3: without a majority: told in time, refused with an error, and everything works when it is back', async () => {
    const events: string[] = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ jeopardy: note('jeopardy'), lost: note('lost') }];
    const [ours, theirs] = [world.service(TTL, { observers }), world.service({ ...TTL, patienceMs: 500 })];
    const lock = await ours.acquire('k');
    const told = aborted(lock.signal);
    const majority = world.server.members.slice(1);
    const killedAt = performance.now();
    await Promise.all(majority.map((member) => member.kill()));
    await expect(failureOf(theirs.acquire('k'))).resolves.toBeInstanceOf(LockBackendError);
    expect((await told) - killedAt).toTakeLessThan(TTL.sessionTtlMs + SLACK_MS);
    expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
    expect([...new Set(events)]).toEqual(['jeopardy', 'lost']);
    await Promise.all(majority.map((member) => member.launch()));
    await (await eventually(() => theirs.acquire('k'), { withinMs: 15_000 })).release();
  });

  it(
    'E3: members restarted one after the other: nothing is lost, and others go on',
    async () => {
      const service = world.service(ELECTION_TTL);
      await (await service.acquire('k')).release();
      const lock = await service.acquire('held');
      for (const member of world.server.members) {
        await member.kill();
        await (await service.acquire('k', { waitMs: 20_000 })).release();
        await member.launch();
        await untilLed();
      }
      await throughout(ELECTION_TTL.sessionTtlMs, () => expect(lock.isHeld).toBe(true));
      await lock.release();
    },
    timeLimitOf(300_000),
  );

  it(
    'order: a holder whose only member is a leader that froze is told before the next one has the lock',
    async () => {
      for (let round = 0; round < 2; round += 1) {
        const leader = await untilLed();
        const others = world.server.urls.filter((url) => url !== leader.url);
        const [alone, next] = [
          world.service({ ...TTL, endpoints: leader.url }),
          world.service({ ...TTL, endpoints: others }),
        ];
        const lock = await alone.acquire('k', { waitMs: 10_000 });
        let toldAt = Infinity;
        void aborted(lock.signal).then((at) => (toldAt = at));
        leader.freeze();
        const present = await eventually(() => next.acquire('k', { waitMs: 20_000 }), { withinMs: 20_000 });
        const grantedAt = performance.now();
        expect(lock.isHeld).toBe(false);
        expect(toldAt).toBeLessThan(grantedAt);
        expect(present.fencingToken).toBeGreaterThan(lock.fencingToken);
        leader.thaw();
        // The frozen member answers now what it was asked meanwhile.
        await throughout(500, () => expect([lock.isHeld, present.isHeld]).toEqual([false, true]));
        await present.release();
      }
    },
    timeLimitOf(300_000),
  );

  it(
    'leader killed and started again under load: no two holders, growing tokens, and a resource that fences',
    async () => {
      using directory = new TemporaryDirectory('etcd-histories');
      await using redis = await RedisServer.start();
      using resource = new FencedResource(redis.url);
      const files = [0, 1, 2].map((place) => join(directory.path, `${place}.jsonl`));
      const keys = ['hot', 'hot', 'warm'];
      const runs = files.map((history, place) =>
        hammer(world.service({ ...TTL, patienceMs: 10_000 }), {
          keys,
          ms: 7_000,
          callers: 3,
          ttlMs: 3_000,
          history,
          proc: `${place}`,
          resource: redis.url,
        }),
      );
      for (const afterMs of [1_500, 2_500]) {
        await new Promise((resolve) => setTimeout(resolve, afterMs));
        const leader = await untilLed();
        await leader.kill();
        await leader.launch();
      }
      const grants = (await Promise.all(runs)).reduce((a, b) => a + b);
      const history = loadHistory(files);
      expect(checkExclusion(history)?.message).toBeUndefined();
      expect(checkTokenOrder(history)?.message).toBeUndefined();
      const writes = await Promise.all([...new Set(keys)].map((key) => resource.writes(key)));
      expect(checkResourceOrder(writes.flat())?.message).toBeUndefined();
      process.stdout.write(`etcd: ${grants} grants while its leader was killed twice, none of two holders at a time\n`);
      expect(grants).toBeGreaterThan(50);
    },
    timeLimitOf(300_000),
  );

  it(
    'E8: member removed from the cluster: another one is asked',
    async () => {
      await using smaller = await EtcdWorld.start({ members: 3, args: ['--strict-reconfig-check=false'] });
      const [removed] = smaller.server.members;
      const service = smaller.service({ ...ELECTION_TTL, endpoints: smaller.server.urls });
      const lock = await service.acquire('held');
      await smaller.operator.removeMember(removed.url);
      await eventually(() => !removed.running, { withinMs: 10_000 });
      await throughout(ELECTION_TTL.sessionTtlMs * 1.5, () => expect(lock.isHeld).toBe(true));
      await (await service.acquire('k')).release();
      await lock.release();
    },
    timeLimitOf(300_000),
  );
});
