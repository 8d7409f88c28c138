import { Client } from 'pg';
import { describeWanted, eventually, handled, serverToken, SLACK_MS } from '../../support/index.js';
import { BLOCKED_SESSIONS_SQL } from '../sql/blocked-sessions.js';
import { LISTENERS, SqlWorld } from './sql-world.js';

const LONG_TTL_MS = 60_000;
const ROUNDS = 20;

describeWanted(['postgres'], 'the wake-up of waiters, %s', (type) => {
  const world = SqlWorld.shared(type);

  const isAwaited = async (key: string): Promise<void> => {
    const rows = await world.ask(
      'select cardinality(waiting) as waiters from distributed_lock where lock_key = $1 and owner is not null',
      [key],
    );
    expect(rows).toEqual([{ waiters: 1 }]);
  };

  const areBlocked = (count: number): Promise<void> =>
    eventually(async () => expect(await world.ask(BLOCKED_SESSIONS_SQL.postgres)).toHaveLength(count));

  const connected = async (): Promise<Client> => {
    const client = new Client({ connectionString: world.url });
    await client.connect();
    return client;
  };

  it('takes one message, and one question of whoever is woken', async () => {
    const [ours, theirs] = [world.service(), await world.proxied()];
    let requests = 0;
    world.proxy.onRequest(() => (requests += 1));
    const asked: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const lock = await ours.acquire('woken', { ttlMs: LONG_TTL_MS });
      const waiting = theirs.acquire('woken', { ttlMs: LONG_TTL_MS });
      await eventually(() => isAwaited('woken'), { everyMs: 0 });
      const before = requests;
      await lock.release();
      const next = await waiting;
      asked.push(requests - before);
      await next.release();
    }
    // Every few seconds a waiter looks for lost messages, too.
    expect(median(asked)).toBe(1);
  });

  it('costs nothing when nobody waits: no announcement', async () => {
    const heard: unknown[] = [];
    const client = await connected();
    client.on('notification', ({ payload }) => heard.push(payload));
    await client.query('listen distributed_lock');
    const service = world.service();
    for (let round = 0; round < 10; round += 1) await (await service.acquire('quiet')).release();
    await client.query(`select pg_notify('distributed_lock', 'the end')`);
    await eventually(() => expect(heard).toContain('the end'));
    await client.end();
    expect(heard).toEqual(['the end']);
  });

  it('listens on one connection for all keys, and only once somebody has waited', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const locks = await Promise.all(
      Array.from({ length: 20 }, (_, n) => ours.acquire(`many-${n}`, { ttlMs: LONG_TTL_MS })),
    );
    // Those of the tests before may still be saying goodbye.
    await eventually(async () => expect(await world.ask(LISTENERS)).toEqual([]));
    const waits = locks.map(({ key }) => theirs.acquire(key, { ttlMs: LONG_TTL_MS }));
    // A place in line comes first, the connection that listens after it.
    await eventually(async () => expect(await world.ask(LISTENERS)).toHaveLength(1));
    await Promise.all(locks.map((lock) => lock.release()));
    const granted = await Promise.all(waits);
    await expect(world.ask(LISTENERS)).resolves.toHaveLength(1);
    await Promise.all(granted.map((lock) => lock.release()));
  });

  it('goes on after the listening connection was killed: whoever waits then asks, and listens again', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const lock = await ours.acquire('deaf', { ttlMs: LONG_TTL_MS });
    const waiting = theirs.acquire('deaf', { ttlMs: LONG_TTL_MS });
    await eventually(() => isAwaited('deaf'));
    await world.ask(`select pg_terminate_backend(pid) from (${LISTENERS}) as listener`);
    const since = performance.now();
    await lock.release();
    await (await waiting).release();
    expect(performance.now() - since).toTakeLessThan(SLACK_MS);
  });

  it('asks again and again where no connection can listen, and health says so until one does', async () => {
    await world.ask('create role narrow login connection limit 1');
    await world.ask('grant select, insert, update on distributed_lock to narrow');
    const narrow = { url: world.urlOf({ username: 'narrow' }), synchronize: false };
    const [ours, theirs] = [world.service(), world.service(narrow)];
    const lock = await ours.acquire('narrow', { ttlMs: LONG_TTL_MS });
    const waiting = theirs.acquire('narrow', { ttlMs: LONG_TTL_MS });
    await eventually(() => expect(theirs.health.detail).toMatch(/nobody listens .*too many connections/u));
    const since = performance.now();
    await lock.release();
    const next = await waiting;
    expect(performance.now() - since).toTakeLessThan(2 * SLACK_MS);
    await next.release();
    await eventually(() => expect(theirs.health.detail).not.toContain('nobody listens'));
  });

  it('passes over a waiter that died: the next one asks when it would have had the key for long enough', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    // A process that does not listen yet polls, and needs no message.
    const first = await ours.acquire('heard', { ttlMs: LONG_TTL_MS });
    const heard = theirs.acquire('heard', { ttlMs: LONG_TTL_MS });
    await eventually(async () => expect(await world.ask(LISTENERS)).toHaveLength(1));
    await first.release();
    await (await heard).release();
    const lock = await ours.acquire('line', { ttlMs: LONG_TTL_MS });
    await world.ask(`update distributed_lock set waiting = '{gone}' where lock_key = 'line'`);
    const waiting = theirs.acquire('line', { ttlMs: LONG_TTL_MS });
    await eventually(async () =>
      expect(
        await world.ask(`select cardinality(waiting) as waiters from distributed_lock where lock_key = 'line'`),
      ).toEqual([{ waiters: 2 }]),
    );
    const since = performance.now();
    await lock.release();
    await (await waiting).release();
    expect(performance.now() - since).toTakeLessThan(1_000 + SLACK_MS);
  });

  it('hands the key on when the one who leaves the line was handed it at that moment', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const lock = await ours.acquire('leaving', { ttlMs: LONG_TTL_MS });
    const abort = new AbortController();
    const waiting = handled(theirs.acquire('leaving', { signal: abort.signal }));
    await eventually(() => isAwaited('leaving'));
    // Both statements wait for the row, and get it in this order.
    const operator = await connected();
    await operator.query('begin');
    await operator.query(`select from distributed_lock where lock_key = 'leaving' for update`);
    const released = lock.release();
    await areBlocked(1);
    abort.abort(new Error('no longer wanted'));
    await expect(waiting).rejects.toThrow('no longer wanted');
    await areBlocked(2);
    await operator.query('commit');
    await operator.end();
    await released;
    const owner = `select owner from distributed_lock where lock_key = 'leaving'`;
    await eventually(async () => expect(await world.ask(owner)).toEqual([{ owner: null }]), { withinMs: 500 });
  });

  it('hands the key to a waiter that joined the line while the release waited for the row', async () => {
    const lock = await world.service().acquire('joining', { ttlMs: LONG_TTL_MS });
    const operator = await connected();
    await operator.query('begin');
    await operator.query(`update distributed_lock set waiting = array[$1] where lock_key = 'joining'`, [
      `${Date.now()}|late`,
    ]);
    const released = lock.release();
    await areBlocked(1);
    await operator.query('commit');
    await operator.end();
    await released;
    const row = `select owner, waiting from distributed_lock where lock_key = 'joining'`;
    await expect(world.ask(row)).resolves.toEqual([{ owner: 'late', waiting: [] }]);
  });

  it('S9: hands the key on with a token that is one greater, when the one before is ahead of the clock', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const lock = await ours.acquire('ahead', { ttlMs: LONG_TTL_MS });
    const waiting = theirs.acquire('ahead', { ttlMs: LONG_TTL_MS });
    await eventually(() => isAwaited('ahead'));
    const ahead = 2n ** 52n - 2n;
    await world.ask(`update distributed_lock set token = ${ahead} where lock_key = 'ahead'`);
    await lock.release();
    const next = await waiting;
    expect(serverToken(next.fencingToken)).toBe(ahead + 1n);
    await next.release();
  });

  it('takes over from a holder that died without a release', async () => {
    const [dead, other] = [world.service(), world.service()];
    await dead.acquire('dead', { ttlMs: 300, watchdog: false });
    const since = performance.now();
    await (await other.acquire('dead')).release();
    expect(performance.now() - since).toTakeLessThan(300 + SLACK_MS);
  });
});

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
