import { LockService } from 'nestjs-distributed-lock/core';
import { Client } from 'pg';
import { rowManager } from 'nestjs-distributed-lock/typeorm';
import { type Contract, eventually, failureOf, Gate, SLACK_MS, timeLimitOf, wantedOf } from '../../support/index.js';
import { describeOnBackend } from '../../conformance/describe-lock-backend.js';
import { ProxiedBackend } from '../../faults/proxied-backend.js';
import { startHolder } from '../../faults/start-holder.js';
import { BLOCKED_SESSIONS_SQL } from '../sql/blocked-sessions.js';
import { type SqlHarness, sqlHarness } from './harness.js';
import { LIST_MS } from './operators.js';

const LONG_TTL_MS = 20_000;

/** Connections of clients, and the limit of a statement's time. */
const SQL = {
  postgres: {
    clients: `select pid as id from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    kill: (id: unknown) => `select pg_terminate_backend(${String(id)})`,
    impatient: `alter database postgres set statement_timeout = '500ms'`,
    patient: `alter database postgres reset statement_timeout`,
    limit: `select current_setting('statement_timeout') as value`,
    limited: { value: '500ms' },
    atOnce: 'for update skip locked',
  },
  mariadb: {
    clients: `select id from information_schema.processlist where user = 'root' and id <> connection_id()`,
    kill: (id: unknown) => `kill connection ${String(id)}`,
    impatient: 'set global max_statement_time = 0.5',
    patient: 'set global max_statement_time = default',
    limit: 'select @@max_statement_time as value',
    limited: { value: 0.5 },
    atOnce: 'for update nowait',
  },
};

/** Ends of a wait for a row, also in the moment in which the row is given. */
describe('waiting for a row', () => {
  for (const name of wantedOf(['postgres-row', 'mariadb-row'])) {
    const harness = sqlHarness(name);
    describeOnBackend(name, harness, (contract) => {
      granted(contract, harness);
      limited(contract, harness);
      cutOff(contract, harness);
    });
  }
});

function granted(contract: Contract, harness: SqlHarness): void {
  it('A2: a waiter that is frozen when its turn comes keeps the row for its TTL, and no longer', async () => {
    const [ours, other, key] = [await contract.service(), await contract.service(), contract.key()];
    const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    await using waiter = await startHolder(contract);
    const waiting = waiter.acquire(key, { ttlMs: harness.shortTtlMs, waitMs: 20_000 });
    await eventually(async () => (await harness.ask(BLOCKED_SESSIONS_SQL[harness.type])).length === 1, {
      everyMs: LIST_MS,
    });
    waiter.child.freeze();
    await lock.release();
    const next = await other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 20_000 });
    waiter.child.thaw();
    await next.release();
    expect((await waiting).fencingToken).toBeGreaterThan(next.fencingToken);
  });

  it('A9: one who never hears of its grant keeps the row for its TTL, and no longer', async () => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const [ours, other] = [await world.proxied(key), await contract.service()];
    const { atOnce } = SQL[harness.type];
    const asked = new Gate();
    void world.proxy.delayReplyOf(atOnce, 60_000);
    world.proxy.onRequest((chunk) => chunk.toString('latin1').includes(atOnce) && asked.open());
    // Long enough to be seen.
    const ttlMs = Math.max(3_000, harness.shortTtlMs);
    const asking = ours.acquire(key, { ttlMs, waitMs: 500 }).catch((error: unknown) => error);
    await asked.opened;
    // A look at the row locks it for a moment, in which the request would be refused.
    await eventually(async () => expect(await harness.leftovers(key)).not.toEqual([]), { everyMs: LIST_MS });
    const next = await other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
    await expect(asking).resolves.toMatchObject({ code: 'LOCK_BACKEND' });
    await next.release();
  });

  it('tries once and does not wait, also for a key that somebody else is just making', async () => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const [ours, other] = [await world.proxied(), await contract.service()];
    const making = new Gate();
    const stopLooking = world.proxy.onRequest((chunk) => {
      if (!chunk.toString('latin1').includes('insert ')) return;
      world.proxy.pause('up');
      making.open();
    });
    const trying = ours.tryAcquire(key);
    await making.opened;
    stopLooking();
    const lock = await other.acquire(key, { ttlMs: LONG_TTL_MS });
    const since = performance.now();
    world.proxy.resume();
    await expect(trying).resolves.toBeNull();
    expect(performance.now() - since).toTakeLessThan(SLACK_MS);
    await lock.release();
  });
}

function limited(contract: Contract, harness: SqlHarness): void {
  const { impatient, patient, limit, limited: asBefore } = SQL[harness.type];
  afterEach(() => harness.ask(patient));

  it('is no failure of a statement where the application limits their time, and leaves the limit as it was', async () => {
    await harness.ask(impatient);
    const [ours, other, key] = [await contract.service(), await contract.service(), contract.key()];
    const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    await expect(failureOf(other.acquire(key, { waitMs: 3_000 }))).resolves.toMatchObject({ code: 'LOCK_TIMEOUT' });
    const waiting = other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 20_000 });
    await eventually(async () => (await harness.ask(BLOCKED_SESSIONS_SQL[harness.type])).length === 1, {
      everyMs: LIST_MS,
    });
    await lock.release();
    const next = await waiting;
    await expect(rowManager(next).query(limit)).resolves.toMatchObject([asBefore]);
    await next.release();
  });

  if (harness.type !== 'postgres') return;

  /** Transactions that were seen to wait for a lock. */
  const waits = new Set<unknown>();
  beforeEach(() => waits.clear());

  async function seeWaits(count: number): Promise<void> {
    const blockedSql = `select pid, xact_start::text as began from pg_stat_activity where wait_event_type = 'Lock'`;
    for (const { pid, began } of await harness.ask(blockedSql)) waits.add(`${String(pid)} ${String(began)}`);
    expect(waits.size).toBeGreaterThanOrEqual(count);
  }

  it('lasts no longer than it should, although a waiter waits for the waiter before it, and then for the row', async () => {
    const impatientOptions = { requestTimeoutMs: timeLimitOf(300), patienceMs: 0 };
    const services = [1, 2].map(async () =>
      contract.closing(new LockService(await harness.connectWith(impatientOptions))),
    );
    const [holder, key] = [await contract.service(), contract.key()];
    const lock = await holder.acquire(key, { ttlMs: LONG_TTL_MS });
    const waiters = (await Promise.all(services)).map(async (service) => {
      await using held = await service.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 60_000 });
      return held.isHeld;
    });
    const outcomes = Promise.all(waiters);
    await Promise.race([outcomes, eventually(() => seeWaits(8), { withinMs: 30_000 })]);
    await lock.release();
    await expect(outcomes).resolves.toEqual([true, true]);
  });

  it('goes on while somebody else waits to lock the whole table', async () => {
    const [holder, key] = [await contract.service(), contract.key()];
    const waiter = contract.closing(new LockService(await harness.connectWith({ patienceMs: 0 })));
    const lock = await holder.acquire(key, { ttlMs: LONG_TTL_MS });
    const waiting = waiter.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 60_000 });
    waiting.catch(() => undefined);
    await eventually(() => seeWaits(1));
    const operator = new Client({ connectionString: harness.server().url });
    await operator.connect();
    await operator.query('begin');
    const locking = operator.query('lock table distributed_lock in access exclusive mode').catch(() => undefined);
    await Promise.race([waiting, eventually(() => seeWaits(5), { withinMs: 30_000 })]);
    await harness.ask(`select pg_cancel_backend(pid) from pg_stat_activity where query like 'lock table%'`);
    await locking;
    await operator.end();
    await lock.release();
    await (await waiting).release();
  });
}

function cutOff(contract: Contract, harness: SqlHarness): void {
  it('S4: a connection that died in its sleep costs nothing: another one is opened', async () => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const service = await world.proxied(key);
    world.proxy.pause();
    const { clients, kill } = SQL[harness.type];
    for (const { id } of await harness.ask(clients)) await harness.ask(kill(id));
    const trying = service.tryAcquire(key);
    world.proxy.resume();
    const lock = await trying;
    expect(lock?.isHeld).toBe(true);
    await lock?.release();
  });

  it('S4: a waiter whose connection is killed goes on waiting', async () => {
    const [ours, other, key] = [await contract.service(), await contract.service(), contract.key()];
    const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    const waiting = other.acquire(key, { waitMs: 20_000 });
    const { kill } = SQL[harness.type];
    for (let round = 0; round < 2; round += 1) {
      // The list may be as old as that, and name one who is gone.
      const killed = async (id: unknown): Promise<unknown> =>
        harness.ask(kill(id)).then(
          () => id,
          () => false,
        );
      const id = await eventually(
        async () => {
          const [waiter] = await harness.ask(BLOCKED_SESSIONS_SQL[harness.type]);
          return waiter !== undefined && killed(waiter['id']);
        },
        { everyMs: LIST_MS },
      );
      await eventually(
        async () => !(await harness.ask(BLOCKED_SESSIONS_SQL[harness.type])).some((row) => row['id'] === id),
        { everyMs: LIST_MS },
      );
    }
    await lock.release();
    await (await waiting).release();
  });

  it('A26: a waiter outlasts a restart of the server', async () => {
    const [ours, key, waitMs] = [await contract.service(), contract.key(), 20_000];
    // The restart takes as long as the machine is busy, so only the wait limits it.
    const other = contract.closing(new LockService(await harness.connectWith({ patienceMs: waitMs })));
    await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    const waiting = other.acquire(key, { waitMs });
    await eventually(async () => (await harness.ask(BLOCKED_SESSIONS_SQL[harness.type])).length === 1, {
      everyMs: LIST_MS,
    });
    await harness.restart?.({ empty: false });
    await (await waiting).release();
  });
}
