import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DistributedLockModule, Locked, LockConfigurationError, LockService } from 'nestjs-distributed-lock';
import { CreateDistributedLock1760000000000, Fenced, typeorm } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import { context } from '../../nest/apps.js';
import { describeWanted, endAfterEach, eventually, failureOf } from '../../support/index.js';
import { ExistingTableWorld } from './existing-table-world.js';

const STRATEGIES = {
  postgres: ['lease', 'row', 'session'],
  mariadb: ['lease', 'row', 'session'],
  sqlite: ['lease'],
} as const;

describeWanted(['postgres', 'mariadb', 'sqlite'], 'the start of an application, %s', (type) => {
  const keep = endAfterEach((dataSource: DataSource) => dataSource.destroy());
  const world = ExistingTableWorld.shared(type);

  const start = (options: object, ...providers: Parameters<typeof context>[0]['providers'] & object) => {
    const backend = typeorm(Object.assign({ dataSource: { options: world.options } }, options))();
    return context({ imports: [DistributedLockModule.forRoot(backend)], providers });
  };
  const open = async (): Promise<DataSource> => keep(await new DataSource(world.options).initialize());
  const migrate = async (dataSource: DataSource): Promise<void> => {
    const runner = dataSource.createQueryRunner();
    await new CreateDistributedLock1760000000000().up(runner);
    await runner.release();
  };

  it.each(STRATEGIES[type])('S12: stops without its table, and says what to do: %s', async (strategy) => {
    const error = await failureOf(start({ strategy, tableName: 'no_such_table' }));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error)).toMatch(/no_such_table.*CreateDistributedLock1760000000000/u);
  });

  it.each(STRATEGIES[type])('S12: stops with a table of another shape, and names the column: %s', async (strategy) => {
    await world.ask('create table other_shape (lock_key varchar(50), owner varchar(50), token bigint)');
    const error = await failureOf(start({ strategy, tableName: 'other_shape' }));
    await world.ask('drop table other_shape');
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error)).toContain('expires_at');
  });

  it('S12: stops with a table of an older program that lacks a column', async () => {
    const columns = { key: 'method_name', owner: 'client_id', expiresAt: 'until' };
    const error = await failureOf(start({ tableName: 'method_lock', columns }));
    expect(error).toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'columns.expiresAt' });
  });

  it('looks at the table when every module is initialised, and may have made it', async () => {
    const dataSource = await open();
    @Injectable()
    class Migrations implements OnModuleInit {
      onModuleInit(): Promise<void> {
        return migrate(dataSource);
      }
    }
    const app = await start({}, Migrations);
    expect(app.get(LockService).health.status).toBe('up');
    await (await app.get(LockService).acquire('k')).release();
  });

  it('stops without the table of the fences, where a method is fenced', async () => {
    const dataSource = await open();
    await migrate(dataSource);
    @Injectable()
    class Sale {
      @Locked('lock')
      @Fenced('sale', { tableName: 'no_such_fence' })
      async sell(): Promise<void> {}
    }
    const provider = { provide: DataSource, useValue: dataSource };
    const why = /no_such_fence cannot be used for fences.*CreateDistributedLock1760000000000/u;
    await expect(start({}, provider, Sale)).rejects.toThrow(why);
    await expect(start({}, provider, { provide: 'MADE', useFactory: () => new Sale() })).rejects.toThrow(why);
    await world.ask('create table no_such_fence (resource varchar(99) primary key, token integer)');
    await expect(start({}, provider, Sale)).rejects.toThrow(/its column (resource|token) is/u);
    await world.ask('drop table no_such_fence');
  });

  const remote = type === 'sqlite' ? [] : STRATEGIES[type];
  remote.forEach((strategy) =>
    it(`goes on without the database, which is shown, and found when it is there: ${strategy}`, async () => {
      await migrate(await open());
      const { port } = world.server();
      await world.server().kill();
      const failures: string[] = [];
      const observers = [{ backendFailed: ({ operation }: { operation: string }) => failures.push(operation) }];
      const backend = typeorm({ dataSource: { options: world.options }, strategy })();
      const app = await context({ imports: [DistributedLockModule.forRoot({ backend, observers })] });
      const { health } = app.get(LockService);
      expect(health.status).toBe('down');
      expect(health.detail).toContain(String(port));
      expect(failures).toEqual(['start']);
      await world.server().restart({ empty: false });
      await eventually(() => app.get(LockService).health.status === 'up', { withinMs: 10_000 });
      await (await app.get(LockService).acquire('k')).release();
    }),
  );
});
