import { Injectable } from '@nestjs/common';
import { DistributedLockModule, Locked, StaleFenceError } from 'nestjs-distributed-lock';
import { CreateDistributedLock1760000000000, Fenced, fencedManager, typeorm } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import { atLeastMs, describeWanted, endAfterEach, eventually } from '../../support/index.js';
import { context } from '../../nest/apps.js';
import { SqlWorld } from './sql-world.js';

@Injectable()
class Sale {
  @Fenced('sale_:id')
  @Locked('lock_sale_:id', { reentrant: true })
  async buy(id: number): Promise<void> {
    await fencedManager().query(`update stock set left_over = left_over - 1 where id = ${id}`);
  }

  @Locked('lock_sale_:id', { ttlMs: atLeastMs(2_000), watchdog: false, reentrant: true })
  @Fenced('sale_:id')
  async buySlowly(id: number): Promise<void> {
    await this.buy(id);
  }
}

describeWanted(['postgres', 'mariadb'], '@Fenced methods, %s', (type) => {
  const world = new SqlWorld(type);
  const keep = endAfterEach((dataSource: DataSource) => dataSource.destroy());

  beforeAll(async () => {
    await world.harness.start();
    const setUp = new DataSource({ type, url: world.url, migrations: [CreateDistributedLock1760000000000] });
    await setUp.initialize();
    await setUp.runMigrations();
    await setUp.query('create table stock (id integer primary key, left_over integer not null)');
    await setUp.query('insert into stock values (1, 100), (2, 100)');
    await setUp.destroy();
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  /** A process of its own, with a pool of so many connections. */
  const shop = async (poolSize: number): Promise<{ sale: Sale; dataSource: DataSource }> => {
    const dataSource = keep(await new DataSource({ type, url: world.url, poolSize }).initialize());
    const provider = { provide: DataSource, useValue: dataSource };
    const module = DistributedLockModule.forRoot(typeorm({ dataSource }));
    const app = await context({ imports: [module], providers: [provider, Sale] });
    return { sale: app.get(Sale), dataSource };
  };
  const stock = async (id: number): Promise<number> =>
    Number((await world.ask(`select left_over from stock where id = ${id}`))[0]?.['left_over']);

  it('commit before the lock is given back, and enter again without waiting for themselves', async () => {
    const [one, two] = [await shop(5), await shop(5)];
    const before = await stock(1);
    await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 ? one : two).sale.buy(1)));
    await one.sale.buySlowly(1);
    expect(await stock(1)).toBe(before - 21);
  });

  it('of a holder that got its transaction only after its lease are refused, and write nothing', async () => {
    const [ours, theirs] = [await shop(1), await shop(5)];
    const blocking = ours.dataSource.createQueryRunner();
    await blocking.connect();
    const before = await stock(2);
    const late = ours.sale.buySlowly(2).catch((error: unknown) => error);
    await eventually(async () => {
      const held = await world.ask(`select 1 from distributed_lock where owner is not null`);
      expect(held).toHaveLength(1);
    });
    await theirs.sale.buy(2);
    await blocking.release();
    expect(await late).toBeInstanceOf(StaleFenceError);
    expect(await stock(2)).toBe(before - 1);
  });
});
