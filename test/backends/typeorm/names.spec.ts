import { LockService } from 'nestjs-distributed-lock/core';
import { CreateDistributedLock1760000000000, fenced, typeorm } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import { describeWanted, eventually, failureOf, SLACK_MS } from '../../support/index.js';
import { ExistingTableWorld } from './existing-table-world.js';
import { describeServers, SqlWorld } from './sql-world.js';

const LONG_TTL_MS = 60_000;
const STRATEGIES = ['lease', 'row', 'session'] as const;
/** One that has to be quoted, and that a literal could end in. */
const SCHEMA = `tenant-1's`;

describeServers('names of tables', (world, type) => {
  beforeAll(() => world.ask(type === 'postgres' ? 'create schema app' : 'create database app'));

  it.each(STRATEGIES)('may be words of the language: %s', async (strategy) => {
    for (const tableName of ['user', 'order']) {
      const [ours, theirs] = [world.service({ strategy, tableName }), world.service({ strategy, tableName })];
      const lock = await ours.acquire('k', { ttlMs: LONG_TTL_MS });
      await expect(theirs.tryAcquire('k')).resolves.toBeNull();
      await lock.release();
      await (await theirs.acquire('k')).release();
    }
  });

  it.each(STRATEGIES)('may say where the table is: %s', async (strategy) => {
    const elsewhere = { strategy, tableName: 'app.locks' };
    const [ours, theirs] = [world.service(elsewhere), world.service(elsewhere)];
    const lock = await ours.acquire('k', { ttlMs: LONG_TTL_MS });
    const waiting = theirs.acquire('k', { ttlMs: LONG_TTL_MS });
    const others = await world.service({ strategy }).acquire('k');
    await lock.release();
    await (await waiting).release();
    await others.release();
    await expect(world.ask('select lock_key from app.locks')).resolves.toHaveLength(1);
  });
});

describeWanted(['postgres'], 'the schema of a data source, %s', (type) => {
  const world = SqlWorld.shared(type);
  const schema = SCHEMA;
  const quoted = `"${schema}"`;
  beforeAll(() => world.ask(`create schema ${quoted}`));

  const options = () => ({ type, url: world.url, schema });
  const inSchema = (strategy: (typeof STRATEGIES)[number]) =>
    world.service({ strategy, dataSource: { options: options() } });

  it.each(STRATEGIES)('has the locks too, apart from those of other schemas: %s', async (strategy) => {
    const [ours, theirs, others] = [inSchema(strategy), inSchema(strategy), world.service({ strategy })];
    const lock = await ours.acquire('k', { ttlMs: LONG_TTL_MS });
    await expect(theirs.tryAcquire('k')).resolves.toBeNull();
    await (await others.acquire('k')).release();
    await lock.release();
    await expect(world.ask(`select lock_key from ${quoted}.distributed_lock`)).resolves.toHaveLength(1);
  });

  it('wakes those who wait in it', async () => {
    const [ours, theirs] = [inSchema('lease'), inSchema('lease')];
    const took: number[] = [];
    for (let round = 0; round < 2; round += 1) {
      const lock = await ours.acquire('woken', { ttlMs: LONG_TTL_MS });
      const waiting = theirs.acquire('woken', { ttlMs: LONG_TTL_MS });
      const line = `select waiting from ${quoted}.distributed_lock where cardinality(waiting) = 1`;
      await eventually(async () => expect(await world.ask(line)).toHaveLength(1));
      const since = performance.now();
      await lock.release();
      await (await waiting).release();
      took.push(performance.now() - since);
    }
    expect(took[1]).toTakeLessThan(SLACK_MS);
  });

  it('is where the migration makes the tables, and where fences are', async () => {
    await world.ask(`drop table if exists ${quoted}.distributed_lock`);
    const dataSource = await new DataSource({
      ...options(),
      migrations: [CreateDistributedLock1760000000000],
    }).initialize();
    await dataSource.runMigrations();
    const service = world.service({ dataSource, synchronize: false });
    await service.withLock('k', (lock) => fenced(dataSource.manager, 'resource', lock, async () => undefined));
    await expect(world.ask(`select resource from ${quoted}.distributed_lock_fence`)).resolves.toHaveLength(1);
    await dataSource.undoLastMigration();
    await expect(
      world.ask(`select to_regclass('${schema.replace("'", "''")}.distributed_lock')::text as t`),
    ).resolves.toEqual([{ t: null }]);
    await dataSource.destroy();
  });
});

describeWanted(['postgres', 'mariadb', 'sqlite'], 'the table of an older program, %s', (type) => {
  const world = ExistingTableWorld.shared(type);

  it('may have a word of the language for a name', async () => {
    const quote = type === 'mariadb' ? '`' : '"';
    await world.ask(
      `create table ${quote}order${quote} (method_name varchar(100) not null unique, client_id varchar(64) not null)`,
    );
    const columns = { key: 'method_name', owner: 'client_id' };
    const service = new LockService(
      typeorm({ dataSource: { options: world.options }, tableName: 'order', columns, synchronize: true }),
    );
    await (await service.acquire('k')).release();
    await service.close();
  });

  it('says how it is made where it is missing', async () => {
    const service = new LockService(typeorm({ dataSource: { options: world.options }, tableName: 'nowhere' }));
    const error = await failureOf(service.acquire('k'));
    await service.close();
    expect(String(error)).toMatch(/the table nowhere cannot be used.*typeorm\(\{ dataSource, synchronize: true \}\)/u);
  });
});
