import Database from 'libsql';
import { LockService } from 'nestjs-distributed-lock';
import { CreateDistributedLock1760000000000, fenced } from 'nestjs-distributed-lock/typeorm';
import { TestLockBackend } from 'nestjs-distributed-lock/testing';
import { DataSource } from 'typeorm';

const database = await new DataSource({
  type: 'better-sqlite3',
  driver: Database,
  database: ':memory:',
  migrations: [CreateDistributedLock1760000000000],
  migrationsRun: true,
}).initialize();
await database.query('create table sale (id integer primary key, stock integer)');
await database.query('insert into sale values (7, 10)');

/** A backend that can take a lock away, as a server does when a process freezes for longer than its lease. */
const backend = new TestLockBackend();
const locks = new LockService(backend);

const frozen = await locks.acquire('sale_7');
const stock = await stockOf(7); // decides on this, and freezes
backend.revoke('sale_7');

await using next = await locks.acquire('sale_7');
await write(next.fencingToken, (await stockOf(7)) - 1);
console.log(`the next holder sells one: ${await stockOf(7)} left`);

await write(frozen.fencingToken, stock - 1).catch((error: Error) =>
  console.log(`${error.name}: the frozen one wakes up`),
);
console.log(`still ${await stockOf(7)} left`);

/** The fence compares the token with the newest one in the same transaction as the write. */
function write(fencingToken: bigint, left: number): Promise<void> {
  return fenced(database.manager, 'sale_7', { fencingToken }, async (manager) => {
    await manager.query('update sale set stock = ? where id = 7', [left]);
  });
}

async function stockOf(id: number): Promise<number> {
  const [sale] = await database.query<{ stock: number }[]>('select stock from sale where id = ?', [id]);
  return sale?.stock ?? 0;
}
