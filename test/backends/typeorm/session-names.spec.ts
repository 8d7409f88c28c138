import { LockService } from 'nestjs-distributed-lock/core';
import { mysql } from 'nestjs-distributed-lock/mysql';
import { MysqlServer } from '../../servers/mysql-server.js';
import { describeWanted } from '../../support/index.js';
import { describeServers } from './sql-world.js';

const TTL_MS = 20_000;

describeServers('S8: names of session locks', (world) => {
  it('differ where the server’s own would not: by case, by blanks at the end, after 64 characters', async () => {
    const [ours, theirs] = [world.service({ strategy: 'session' }), world.service({ strategy: 'session' })];
    const long = 'x'.repeat(64);
    const locks = [];
    for (const key of ['Sale', 'sale', 'sale ', `${long}1`, `${long}2`]) {
      locks.push(await ours.acquire(key, { waitMs: 0, ttlMs: TTL_MS }));
      await expect(theirs.tryAcquire(key)).resolves.toBeNull();
    }
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('are of one database, and of one table', async () => {
    const others = world.service({ strategy: 'session', tableName: 'other_locks' });
    const lock = await world.service({ strategy: 'session' }).acquire('sale', { ttlMs: TTL_MS });
    await (await others.acquire('sale', { waitMs: 0 })).release();
    await lock.release();
  });
});

describeWanted(['mariadb'], 'S8: a server that ignores case in names of tables, %s', (type) => {
  const server = MysqlServer.shared(type, ['--lower-case-table-names=1']);

  it('has one lock for all spellings of the table', async () => {
    const open = (tableName: string) =>
      new LockService(mysql({ url: server.url, strategy: 'session', tableName, synchronize: true }));
    await using ours = open('Shop_Locks');
    await using theirs = open('shop_locks');
    const lock = await ours.acquire('sale', { ttlMs: TTL_MS });
    await expect(theirs.tryAcquire('sale')).resolves.toBeNull();
    await lock.release();
  });
});
