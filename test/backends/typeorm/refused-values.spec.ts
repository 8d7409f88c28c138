import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { describeWanted, failureOf, timeLimitOf } from '../../support/index.js';
import { describeServers, SqlWorld } from './sql-world.js';

const STRATEGIES = ['lease', 'row', 'session'] as const;

/** Refuses keys that begin with `refused`, as a rule of the application's. */
const TRIGGERS = {
  postgres: [
    `create function refuse() returns trigger language plpgsql as $$ begin
       if new.lock_key like 'refused%' then raise exception 'no such key'; end if; return new; end $$`,
    'create trigger refusing before insert on distributed_lock for each row execute function refuse()',
  ],
  mariadb: [
    `create trigger refusing before insert on distributed_lock for each row
       if new.lock_key like 'refused%' then signal sqlstate '45000' set message_text = 'no such key'; end if`,
  ],
};
const SESSIONS = {
  postgres: `select pid as id from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by 1`,
  mariadb: 'select id from information_schema.processlist where id <> connection_id() order by 1',
};

describeServers('a key that the database refuses', (world, type) => {
  beforeAll(async () => {
    for (const statement of TRIGGERS[type]) await world.ask(statement);
  });

  it.each(STRATEGIES)('is told to its caller at once, and costs nobody else anything: %s', async (strategy) => {
    const service = world.service({ strategy, synchronize: false });
    const held = await service.acquire('held');
    await (await service.acquire('other')).release();
    const seen: string[] = [];
    service.backend.store.health?.onChange(({ status }) => seen.push(status));
    const before = await world.ask(SESSIONS[type]);
    const since = performance.now();
    for (let round = 0; round < 20; round += 1) {
      const error = await failureOf(service.acquire(`refused-${round}`, { waitMs: 60_000 }));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(String(error)).toContain('no such key');
    }
    // Each that is asked for again costs two seconds.
    expect(performance.now() - since).toTakeLessThan(Math.max(10_000, timeLimitOf(2_000)));
    const after = await world.ask(SESSIONS[type]);
    expect(after).toEqual(expect.arrayContaining([...before]));
    // Leases have two connections, and may not have needed the second one before.
    expect(after.length).toBeLessThanOrEqual(before.length + 1);
    expect(seen).toEqual([]);
    expect(service.health).toMatchObject({ status: 'up' });
    await (await service.acquire('other')).release();
    expect(held.isHeld).toBe(true);
    await held.release();
  });
});

describeWanted(['postgres'], 'a key that a database in LATIN1 cannot write', (type) => {
  const world = SqlWorld.shared(type);
  beforeAll(() => world.ask(`create database latin1 encoding 'LATIN1' locale 'C' template template0`));

  it.each(STRATEGIES)('is told to its caller at once, and leaves the others their health: %s', async (strategy) => {
    const url = Object.assign(new URL(world.url), { pathname: 'latin1' }).href;
    const service = world.service({ strategy, url });
    await (await service.acquire('caf\u00e9')).release();
    const since = performance.now();
    for (const key of ['\u{1f512}', '20 \u20ac', '\u043a\u043b\u044e\u0447']) {
      const error = await failureOf(service.acquire(key, { waitMs: 60_000 }));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(String(error)).toContain('has no equivalent in encoding "LATIN1"');
      expect(service.health.status).toBe('up');
    }
    expect(performance.now() - since).toTakeLessThan(Math.max(4_000, timeLimitOf(2_000)));
    await (await service.acquire('caf\u00e9')).release();
  });
});
