import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { addLockColumns, type ExistingTableColumns } from 'nestjs-distributed-lock/typeorm';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { atLeastMs, describeWanted, failureOf } from '../../support/index.js';
import { type DatabaseType, ExistingTableWorld } from './existing-table-world.js';

const COLUMNS: ExistingTableColumns = { key: 'methodName', owner: 'desc', updatedAt: 'order', expiresAt: 'until' };

/** With names that need quotes. */
class ExtendMethodLock1760000000001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await addLockColumns(queryRunner, { tableName: 'OddNames', columns: COLUMNS });
    await addLockColumns(queryRunner, { tableName: 'OddNames', columns: COLUMNS });
  }

  async down(): Promise<void> {}
}

const TEXT = { postgres: 'varchar(64)', mariadb: 'varchar(64)', sqlite: 'varchar(64)' };
const TIME = { postgres: 'timestamptz', mariadb: 'datetime(6)', sqlite: 'integer' };
const ADDED = (type: DatabaseType): string => `expires_at ${TIME[type]}, token bigint, metadata text`;

/** Tables that can never keep our locks, and the column at fault. */
const HOPELESS: [string, string, (type: DatabaseType) => string | null][] = [
  ['a missing table', 'method_name|missing', () => null],
  ['a missing column', 'client_id', (type) => `method_name ${TEXT[type]} unique, ${ADDED(type)}`],
  [
    'a key without an index of its own',
    'method_name',
    (type) => `method_name ${TEXT[type]}, client_id ${TEXT[type]}, ${ADDED(type)}, unique (method_name, client_id)`,
  ],
  [
    'an owner of another type',
    'client_id',
    (type) => `method_name ${TEXT[type]} unique, client_id integer, ${ADDED(type)}`,
  ],
  [
    'an owner that is too short',
    'client_id',
    (type) => `method_name ${TEXT[type]} unique, client_id varchar(35), ${ADDED(type)}`,
  ],
  [
    'an expiry of another type',
    'expires_at',
    (type) =>
      `method_name ${TEXT[type]} unique, client_id ${TEXT[type]}, expires_at varchar(20), token bigint, metadata text`,
  ],
  [
    'a column that an insert must fill',
    'tenant',
    (type) => `method_name ${TEXT[type]} unique, client_id ${TEXT[type]}, tenant varchar(9) not null, ${ADDED(type)}`,
  ],
];

describeWanted(['postgres', 'mariadb', 'sqlite'], 'the shape of a table of an older program, %s', (type) => {
  const world = ExistingTableWorld.shared(type);
  const mark = type === 'mariadb' ? '`' : '"';
  const quoted = (sql: string): string => sql.replaceAll('"', mark);

  it.each(HOPELESS)('S12: %s is an error that names the column', async (_, column, shape) => {
    const definition = shape(type);
    if (definition) await world.ask(`create table hopeless (${definition})`);
    const service = world.service({
      tableName: 'hopeless',
      columns: { key: 'method_name', owner: 'client_id' },
      synchronize: false,
    });
    const error = await failureOf(service.acquire('k', { waitMs: 60_000 }));
    if (definition) await world.ask('drop table hopeless');
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error)).toMatch(new RegExp(`the table hopeless cannot be used for locks .*(${column})`, 'u'));
    expect(String(error)).toContain('addLockColumns');
  });

  it('gets what it lacks from a migration, whatever it is called, and older inserts stay valid', async () => {
    await world.ask(
      quoted(`create table "OddNames" ("methodName" varchar(99) not null primary key, "desc" varchar(40) not null,
          "order" ${type === 'sqlite' ? 'text' : 'timestamp'} not null default current_timestamp)`),
    );
    await world.ask(quoted(`insert into "OddNames" ("methodName", "desc") values ('before', 'client-1')`));
    const dataSource = new DataSource({ ...world.options, migrations: [ExtendMethodLock1760000000001] });
    await dataSource.initialize();
    await dataSource.runMigrations();
    await dataSource.destroy();
    const service = world.service({ tableName: 'OddNames', columns: COLUMNS, synchronize: false });
    await expect(service.tryAcquire('before')).resolves.toBeNull();
    const lock = await service.acquire('now');
    await world.ask(quoted(`insert into "OddNames" ("methodName", "desc") values ('after', 'client-1')`));
    await expect(service.tryAcquire('after')).resolves.toBeNull();
    await lock.release();
  });

  it('gets what it lacks from eight processes at once', async () => {
    await world.ask(`create table many (method_name ${TEXT[type]} unique, client_id ${TEXT[type]})`);
    const columns = { key: 'method_name', owner: 'client_id' };
    const services = Array.from({ length: 8 }, () => world.service({ tableName: 'many', columns }));
    const locks = await Promise.all(services.map((service, place) => service.acquire(`k${place}`)));
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('needs SELECT, INSERT, UPDATE and DELETE, and no DDL where nothing is missing', async () => {
    if (type === 'sqlite') return;
    await (await world.service().acquire('the columns are there')).release();
    const on = type === 'postgres' ? 'method_lock' : 'test.method_lock';
    const user = type === 'postgres' ? `create role clerk login` : `create user clerk`;
    await world.ask(user);
    await world.ask(`grant select, insert, update, delete on ${on} to clerk`);
    if (type === 'postgres') await world.ask('grant usage on sequence method_lock_id_seq to clerk');
    const { url } = world.options as { url: string };
    const asClerk = Object.assign(new URL(url), { username: 'clerk', password: '' }).href;
    const dataSource = { options: Object.assign({ ...world.options }, { url: asClerk }) };
    const service = world.service({ dataSource, synchronize: false });
    const lock = await service.acquire('by a clerk', { ttlMs: atLeastMs(300) });
    await lock.release();
    expect(await world.ownersOf('by a clerk')).toEqual([]);
  });
});
