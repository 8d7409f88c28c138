import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { slotOf as slotHere, SLOT_COUNT } from '../../../lib/backends/redis/connection/key-slot.js';
import { askRedis, endAfterEach, eventually, failureOf, type RedisServer, throughout } from '../../support/index.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { atLeastMs, timeLimitOf } from '../../support/machine.js';

const COUNT_LISTENERS = "return redis.call('PUBSUB', 'SHARDNUMSUB', ARGV[1])[2]";
const LONG = { ttlMs: 30_000, waitMs: 20_000 };
/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(1_000);

describe('slots of a cluster', () => {
  let cluster: RedisCluster;
  const keep = endAfterEach((service: LockService) => service.close(1_000));
  beforeAll(async () => {
    cluster = await RedisCluster.start({ replicas: 0, nodeTimeoutMs: 15_000 });
  });
  afterAll(() => cluster.stop());

  function connect(mode: RedisMode = 'queue', requestTimeoutMs = 1_000): LockService {
    return keep(new LockService(redis({ cluster: cluster.addresses, mode, requestTimeoutMs })));
  }

  const slotOf = async (key: string) =>
    Number(await askRedis(cluster.servers[0]?.port ?? 0, `CLUSTER KEYSLOT "${key}"`));
  const idOf = ({ port }: RedisServer) => askRedis(port, 'CLUSTER MYID');

  /** From its master to another one, as `redis-cli --cluster reshard` does it, in steps. */
  async function slotOnItsWay(key: string) {
    const leaseKey = `lock:{${key}}`;
    const from = await cluster.masterOf(leaseKey);
    const to = cluster.servers.find((server) => server !== from);
    if (!to) throw new Error('a cluster has several masters');
    const slot = await slotOf(leaseKey);
    await askRedis(to.port, `CLUSTER SETSLOT ${slot} IMPORTING ${await idOf(from)}`);
    await askRedis(from.port, `CLUSTER SETSLOT ${slot} MIGRATING ${await idOf(to)}`);
    return {
      move: (name: string) => askRedis(from.port, `MIGRATE 127.0.0.1 ${to.port} "" 0 10000 KEYS ${name}`),
      end: async () => {
        for (const server of [to, from, ...cluster.servers]) {
          await askRedis(server.port, `CLUSTER SETSLOT ${slot} NODE ${await idOf(to)}`);
        }
        expect(await cluster.masterOf(leaseKey)).toBe(to);
      },
    };
  }

  it('R12: a slot that goes elsewhere (TRYAGAIN, ASK, MOVED) is never a key that is held, and the lock stays ours', async () => {
    const events: string[] = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
    const holder = keep(new LockService(redis({ cluster: cluster.addresses }), { observers }));
    const [waiter, other] = [connect(), connect()];
    const lock = await holder.acquire('moving', { ...LONG, ttlMs: TTL_MS });
    const waiting = waiter.acquire('moving', LONG);
    await eventually(async () => expect(await queueOf('moving')).toBe(1));
    const slot = await slotOnItsWay('moving');
    await slot.move('lock:{moving}');
    // One of its keys is here and one is there: no script can run, but a renewal touches the lease only.
    const error = await failureOf(other.tryAcquire('moving'));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(String(error)).toContain('TRYAGAIN');
    await throughout(TTL_MS * 1.5, () => expect(lock.isHeld).toBe(true));
    await slot.move('lock:{moving}:q');
    await slot.move('lock:{moving}:f');
    await slot.move('lock:{moving}:w');
    await expect(other.tryAcquire('moving')).resolves.toBeNull();
    await slot.end();
    await expect(other.tryAcquire('moving')).resolves.toBeNull();
    await throughout(TTL_MS / 2, () => expect(lock.isHeld).toBe(true));
    await lock.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await next.release();
    expect(events).not.toContain('lost');
  });

  it('R12: while a shared key goes elsewhere, nobody who wants all of it takes its shares for gone', async () => {
    const [holder, other] = [connect(), connect()];
    const reader = await holder.acquire('read', { mode: 'shared', ...LONG });
    const slot = await slotOnItsWay('read');
    await slot.move('lock:{read}:s');
    for (let i = 0; i < 3; i += 1)
      await expect(failureOf(other.tryAcquire('read'))).resolves.toBeInstanceOf(LockBackendError);
    for (const suffix of ['', ':f']) await slot.move(`lock:{read}${suffix}`);
    await slot.end();
    await expect(other.tryAcquire('read')).resolves.toBeNull();
    expect(reader.isHeld).toBe(true);
    await reader.release();
    await (await other.acquire('read', LONG)).release();
  });

  it('a waiter follows its key, and is told at once when it is free there', async () => {
    const [holder, waiter] = [connect(), connect()];
    const lock = await holder.acquire('followed', LONG);
    const waiting = waiter.acquire('followed', LONG);
    await eventually(async () => expect(await queueOf('followed')).toBe(1));
    const slot = await slotOnItsWay('followed');
    for (const suffix of ['', ':q', ':w', ':f']) await slot.move(`lock:{followed}${suffix}`);
    await slot.end();
    const { port } = await cluster.masterOf('lock:{followed}');
    // The waiter's next call tells the queue where the waiter listens now.
    const owner = await askRedis(port, 'LINDEX lock:{followed}:q 0');
    const listenersOf = (channel: string) => askRedis(port, `EVAL "${COUNT_LISTENERS}" 0 ${channel}`);
    const channelOf = (entry: string) => entry.slice(0, entry.indexOf('|'));
    await eventually(
      async () => {
        const entry = await askRedis(port, `HGET lock:{followed}:w ${owner}`);
        expect(await listenersOf(channelOf(entry))).toBe('1');
      },
      { withinMs: 10_000 },
    );
    const since = performance.now();
    await lock.release();
    await (await waiting).release();
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_000));
  });

  it('TRYAGAIN is tried again, so that a slot may be moved without an error', async () => {
    const locks = connect();
    await (await locks.acquire('split', LONG)).release();
    const held = await locks.acquire('split', LONG);
    const slot = await slotOnItsWay('split');
    await slot.move('lock:{split}');
    // It is tried again for as long as a request may take.
    const asking = connect('queue', 20_000).tryAcquire('split');
    const refused = new Promise((resolve) => setTimeout(resolve, 300, 'still asking'));
    await expect(Promise.race([asking, refused])).resolves.toBe('still asking');
    await slot.move('lock:{split}:f');
    await slot.end();
    await expect(asking).resolves.toBeNull();
    await held.release();
  });

  it('nodes that do not know their own hosts are found where they were asked (MOVED without a host)', async () => {
    for (const { port } of cluster.servers) {
      await askRedis(port, 'CONFIG SET cluster-preferred-endpoint-type unknown-endpoint');
    }
    try {
      const locks = connect();
      await locks.withLock('hostless', () => undefined);
      const slot = await slotOnItsWay('hostless');
      await slot.move('lock:{hostless}:f');
      await slot.end();
      const lock = await locks.tryAcquire('hostless');
      expect(lock?.isHeld).toBe(true);
      await lock?.release();
    } finally {
      for (const { port } of cluster.servers) await askRedis(port, 'CONFIG SET cluster-preferred-endpoint-type ip');
    }
  });

  it.each<RedisMode>(['plain', 'getset'])(
    'R12: a new key of a slot on its way is taken where it goes (ASK, %s)',
    async (mode) => {
      const [ours, theirs] = [connect(mode), connect(mode)];
      const key = `new-${mode}`;
      const slot = await slotOnItsWay(key);
      const lock = await ours.acquire(key, { ttlMs: TTL_MS });
      await expect(theirs.tryAcquire(key)).resolves.toBeNull();
      await throughout(TTL_MS * 1.5, () => expect(lock.isHeld).toBe(true));
      await slot.end();
      await expect(theirs.tryAcquire(key)).resolves.toBeNull();
      await lock.release();
      const next = await theirs.acquire(key);
      expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
      await next.release();
    },
  );

  it('R12: a slot that nobody serves (CLUSTERDOWN) is an error, and waited for', async () => {
    const locks = connect();
    await locks.withLock('down', () => undefined);
    const slot = await slotOf('lock:{down}');
    const owner = await cluster.masterOf('lock:{down}');
    for (const { port } of cluster.servers) await askRedis(port, `CLUSTER DELSLOTS ${slot}`);
    const error = await failureOf(locks.tryAcquire('down'));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(String(error)).toContain('CLUSTERDOWN');
    const waiting = connect().acquire('down', LONG);
    await expect(failureOf(locks.acquire('down', { waitMs: timeLimitOf(200) }))).resolves.toMatchObject({
      code: 'LOCK_BACKEND',
    });
    await askRedis(owner.port, `CLUSTER ADDSLOTS ${slot}`);
    await (await waiting).release();
  });

  it('are not asked for by everybody who meets one that nobody serves', async () => {
    const locks = connect();
    await locks.withLock('key', () => undefined);
    const [first] = cluster.servers;
    if (!first) throw new Error('a cluster has several masters');
    const last = Math.ceil(SLOT_COUNT / cluster.servers.length) - 1;
    const keys = Array.from({ length: 600 }, (_, i) => `nowhere-${i}`).filter(
      (key) => slotHere(`lock:{${key}}`) <= last,
    );
    for (const { port } of cluster.servers) await askRedis(port, `CLUSTER DELSLOTSRANGE 0 ${last}`);
    const asked = async () => {
      const stats = await Promise.all(cluster.servers.map((server) => server.commandStats()));
      return stats.reduce((sum, calls) => sum + (calls.get('cluster|slots') ?? 0), 0);
    };
    const before = await asked();
    await Promise.all(keys.map((key) => failureOf(locks.acquire(key, { waitMs: 1_500 }))));
    const times = (await asked()) - before;
    await askRedis(first.port, `CLUSTER ADDSLOTSRANGE 0 ${last}`);
    process.stdout.write(`  ${keys.length} contenders without a node asked ${times} times for the slots in 1,500 ms\n`);
    // Three masters are asked each time.
    expect(times).toBeLessThan(3 * 20);
    await locks.withLock('key', () => undefined);
  });

  it('R13: keys with braces lie where their own text leads, all keys of a lock in one slot', async () => {
    const keys = ['{user}:1', '{user}:2', '{user}:3', 'a}b', 'a}c', '{', '}', '{}', '{}x', '%7D', '{a}{b}', 'a{b}c'];
    const locks = connect();
    const held = await Promise.all(keys.map((key) => locks.acquire(key, LONG)));
    const names = (await Promise.all(cluster.servers.map(namesOn))).flat().filter((name) => !name.includes('{down}'));
    const leases = names.filter((name) => name.endsWith('}'));
    expect(leases).toHaveLength(keys.length);
    for (const lease of leases) expect(await slotOf(`${lease}:f`)).toBe(await slotOf(lease));
    expect(new Set(await Promise.all(leases.map(slotOf))).size).toBe(keys.length);
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('R13: one caller holds keys of several masters at once, taken one after the other', async () => {
    const [ours, theirs] = [connect(), connect()];
    const masters = new Set(await Promise.all(['a', 'b', 'c', 'd'].map((key) => cluster.masterOf(`lock:{${key}}`))));
    expect(masters.size).toBeGreaterThan(1);
    const both = async (
      locks: LockService,
      keys: readonly string[],
      work: () => Promise<unknown>,
    ): Promise<unknown> => {
      const [first, ...rest] = keys;
      return first === undefined ? work() : locks.withLock(first, () => both(locks, rest, work), LONG);
    };
    let inside = 0;
    const visit = async (): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await new Promise(setImmediate);
      inside -= 1;
    };
    await Promise.all([ours, theirs, ours, theirs].map((locks) => both(locks, ['a', 'b', 'c', 'd'], visit)));
  });

  async function queueOf(key: string): Promise<number> {
    const { port } = await cluster.masterOf(`lock:{${key}}`);
    return Number(await askRedis(port, `LLEN lock:{${key}}:q`));
  }

  async function namesOn({ port }: RedisServer): Promise<string[]> {
    return (await askRedis(port, `EVAL "return table.concat(redis.call('KEYS', '*'), ' ')" 0`)).split(' ');
  }
});
