import { LockBackendError } from 'nestjs-distributed-lock/core';
import { eventually, failureOf } from '../../support/index.js';
import { describeServers } from './sql-world.js';

describeServers('health', (world, type) => {
  it('of sessions stays down while nobody can connect, whatever is released that was never granted', async () => {
    const service = world.service({ strategy: 'session', url: world.urlOf({ port: 1 }), patienceMs: 50 });
    const seen: string[] = [];
    service.backend.store.health?.onChange(({ status }) => seen.push(status));
    for (let round = 0; round < 30; round += 1) {
      const error = await failureOf(service.withLock(`unreachable-${round}`, () => 'work'));
      expect(error).toBeInstanceOf(LockBackendError);
      expect(service.health.status).toBe('down');
    }
    expect(seen).toEqual(['down']);
  });

  it('of rows stays up while the connections that are open serve, and says that there can be no more', async () => {
    const service = world.service({ strategy: 'row', url: world.proxiedUrl, patienceMs: 50 });
    const held = await service.acquire('first');
    const seen: string[] = [];
    service.backend.store.health?.onChange(({ status }) => seen.push(status));
    world.proxy.refuse();
    try {
      await expect(failureOf(service.tryAcquire('second'))).resolves.toBeInstanceOf(LockBackendError);
      expect(service.health.detail).toContain('the pool for row locks stays at 1 connections');
      await held.release();
      for (let round = 0; round < 30; round += 1) await service.withLock(`served-${round}`, () => 'work');
    } finally {
      await world.proxy.accept();
    }
    expect(service.health.status).toBe('up');
    expect(seen).toEqual([]);
    const locks = await Promise.all(['a', 'b'].map((key) => service.acquire(key)));
    await Promise.all(locks.map((lock) => lock.release()));
    expect(service.health.detail).toBeUndefined();
  });

  it.each(['lease', 'session', 'row'] as const)(
    'goes down once while a full disk refuses every lock, and up once when it has room: %s',
    async (strategy) => {
      const service = world.service({ strategy, patienceMs: 50 });
      for (const key of ['a', 'b']) await (await service.acquire(key)).release();
      const seen: string[] = [];
      service.backend.health.onChange(({ status }) => seen.push(status));
      await fillDisk();
      try {
        const isDown = async (): Promise<boolean> => {
          for (const key of ['a', 'b']) await expect(failureOf(service.tryAcquire(key))).resolves.toBeDefined();
          return service.health.status === 'down';
        };
        await eventually(isDown);
        for (let round = 0; round < 20; round += 1) expect(await isDown()).toBe(true);
      } finally {
        await makeRoom();
      }
      await eventually(() => service.health.status === 'up');
      expect(seen).toEqual(['down', 'up']);
    },
  );

  it.each(['lease', 'session', 'row'] as const)(
    'goes down when nobody may write to the table any more, and names the table: %s',
    async (strategy) => {
      await giveRights(strategy);
      const service = world.service({
        strategy,
        synchronize: false,
        url: world.urlOf({ username: `shop_${strategy}` }),
      });
      await (await service.acquire('before')).release();
      await takeRights(strategy);
      const isDown = async (): Promise<boolean> => {
        for (const key of ['a', 'b']) {
          expect(await failureOf(service.tryAcquire(key))).toMatchObject({ option: 'tableName' });
        }
        return service.health.status === 'down';
      };
      await eventually(isDown);
      expect(service.health.detail).toMatch(/denied.*distributed_lock/u);
      await giveRights(strategy);
      await eventually(() => service.health.status === 'up');
    },
  );

  const giveRights = async (strategy: string): Promise<void> => {
    const rights = 'grant select, insert, update, delete on distributed_lock';
    const role = `shop_${strategy}`;
    if (type === 'postgres') {
      const [known] = await world.ask('select from pg_roles where rolname = $1', [role]);
      if (!known) await world.ask(`create role ${role} login`);
      await world.ask(`${rights} to ${role}`);
      return;
    }
    // MariaDB begins with a database `test` in which everybody may do everything.
    await world.ask('delete from mysql.db');
    await world.ask(`create user if not exists ${role}@'%'`);
    await world.ask(`${rights} to ${role}@'%'`);
    await world.ask('flush privileges');
  };

  const takeRights = async (strategy: string): Promise<void> => {
    await world.ask(`revoke update on distributed_lock from shop_${strategy}${type === 'postgres' ? '' : `@'%'`}`);
  };

  /** The words of a server that answers everything but has no room on its disk. */
  const fillDisk = async (): Promise<void> => {
    if (type === 'postgres') {
      await world.ask(`create function full_disk() returns trigger language plpgsql as $$ begin
        raise exception 'No space left on device' using errcode = '53100'; end $$`);
      await world.ask(`create trigger full_disk before insert or update on distributed_lock
        for each row execute function full_disk()`);
      return;
    }
    for (const event of ['insert', 'update']) {
      await world.ask(`create trigger full_disk_${event} before ${event} on distributed_lock
        for each row signal sqlstate 'HY000' set mysql_errno = 1114, message_text = 'The table is full'`);
    }
  };

  const makeRoom = async (): Promise<void> => {
    if (type === 'postgres') await world.ask('drop function full_disk() cascade');
    else for (const event of ['insert', 'update']) await world.ask(`drop trigger full_disk_${event}`);
  };
});
