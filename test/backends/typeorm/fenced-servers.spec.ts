import { StaleFenceError } from 'nestjs-distributed-lock/core';
import { CreateDistributedLock1760000000000, fenced } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import { describeWanted } from '../../support/wanted-backends.js';
import { SqlWorld } from './sql-world.js';
import { atLeastMs } from '../../support/machine.js';

describeWanted(['postgres', 'mariadb'], 'migration and fence, %s', (type) => {
  const world = new SqlWorld(type);
  let dataSource: DataSource;

  beforeAll(async () => {
    await world.harness.start();
    dataSource = new DataSource({
      type,
      url: world.url,
      migrations: [CreateDistributedLock1760000000000],
      migrationsRun: true,
    });
    await dataSource.initialize();
    await dataSource.query('create table stock (id integer primary key, left_over integer not null)');
    await dataSource.query('insert into stock values (42, 100)');
  });
  afterEach(() => world.endTest());
  afterAll(async () => {
    await dataSource.destroy();
    await world.stop();
  });

  const stock = async (): Promise<number> =>
    Number((await dataSource.query('select left_over from stock'))[0].left_over);
  const buy = (resource: string, fencingToken: bigint, level?: 'REPEATABLE READ'): Promise<void> =>
    dataSource.transaction(level ?? 'READ COMMITTED', (manager) =>
      fenced(manager, resource, { fencingToken }, (inner) => inner.query('update stock set left_over = left_over - 1')),
    );

  it('locks in the table that the migration made, without any right to make one', async () => {
    const service = world.service({ dataSource, synchronize: false });
    await (await service.acquire('sale_42')).release();
  });

  it('refuses the write of a holder that was frozen, and woke up after its lease', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const former = await ours.acquire('sale_42', { ttlMs: atLeastMs(100), watchdog: false });
    const next = await theirs.acquire('sale_42');
    const before = await stock();
    await buy('sale_42', next.fencingToken);
    await expect(buy('sale_42', former.fencingToken)).rejects.toThrow(StaleFenceError);
    await expect(buy('sale_42', former.fencingToken)).rejects.toMatchObject({ newest: next.fencingToken });
    await buy('sale_42', next.fencingToken);
    expect(await stock()).toBe(before - 2);
    await next.release();
  });

  it('refuses who shared a key before somebody had it alone, and none of those who share it because of each other', async () => {
    const share = { mode: 'shared' } as const;
    const read = (fencingToken: bigint, work = async (): Promise<unknown> => undefined): Promise<unknown> =>
      dataSource.transaction((manager) => fenced(manager, 'shared', { fencingToken, share }, work));
    await read(5n);
    await read(7n);
    await read(5n);
    await buy('shared', 6n);
    await expect(read(5n)).rejects.toMatchObject({ code: 'LOCK_STALE_FENCE', token: 5n, newest: 6n });
    // A writer whose lock came later waits for the transaction of one who was inside before.
    let writing: Promise<void> | undefined;
    let written = false;
    await read(8n, async () => {
      writing = buy('shared', 9n).then(() => void (written = true));
      await dataSource.query('select 1');
      expect(written).toBe(false);
    });
    await writing;
    await expect(read(8n)).rejects.toThrow(StaleFenceError);
  });

  it('keeps resources apart to the byte, and tokens that a double cannot tell apart', async () => {
    const newest = 2n ** 62n + 1n;
    await buy('Tree', newest);
    await expect(buy('Tree', newest - 1n)).rejects.toMatchObject({ newest });
    for (const other of ['tree', 'Tree ', 'Tr\u00e9e', 'Tre\u0301e', 'Tree\0', 'x'.repeat(4_000)]) await buy(other, 1n);
  });

  it('rolls the fence back with the work', async () => {
    const failing = fenced(dataSource.manager, 'rollback', { fencingToken: 9n }, () =>
      Promise.reject(new Error('out of stock')),
    );
    await expect(failing).rejects.toThrow('out of stock');
    await buy('rollback', 1n);
  });

  it('lets 20 newcomers of a resource in, one after the other, without a deadlock', async () => {
    const before = await stock();
    const buys = Array.from({ length: 20 }, () => buy('newcomers', 7n));
    await Promise.all(buys);
    expect(await stock()).toBe(before - 20);
  });

  it('sees a newer token that was committed after its own transaction began', async () => {
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction('REPEATABLE READ');
    await runner.query('select * from stock');
    await buy('snapshot', 5n);
    const late = fenced(runner.manager, 'snapshot', { fencingToken: 4n }, () => Promise.resolve('written'));
    await expect(late).rejects.toThrow(type === 'postgres' ? /serialize/u : StaleFenceError);
    await runner.rollbackTransaction();
    await runner.release();
  });

  it('lets the newest holder write in a transaction that has read before others raised its fences', async () => {
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction('REPEATABLE READ');
    await runner.query('select * from stock');
    await buy('first', 5n);
    await buy('second', 5n);
    const write = (resource: string): Promise<string> =>
      fenced(runner.manager, resource, { fencingToken: 6n }, () => Promise.resolve('written'));
    const first = write('first');
    if (type === 'postgres') await expect(first).rejects.toThrow(/serialize/u);
    else await expect(first.then(() => write('second'))).resolves.toBe('written');
    await runner.rollbackTransaction();
    await runner.release();
  });

  const onMariadb = type === 'mariadb' ? it : it.skip;
  onMariadb('lets only the newest holder write where the server refuses to lock rows that have changed', async () => {
    const runner = dataSource.createQueryRunner();
    await runner.query('set session innodb_snapshot_isolation = 1');
    const write = async (fencingToken: bigint): Promise<string> => {
      await runner.startTransaction('REPEATABLE READ');
      try {
        await runner.query('select * from stock');
        await buy('changed', 5n);
        return await fenced(runner.manager, 'changed', { fencingToken }, () => Promise.resolve('written'));
      } finally {
        await runner.rollbackTransaction();
      }
    };
    try {
      await expect(write(6n)).resolves.toBe('written');
      await expect(write(4n)).rejects.toThrow(StaleFenceError);
    } finally {
      await runner.query('set session innodb_snapshot_isolation = 0');
      await runner.release();
    }
  });

  it('joins the transaction in which its call tree has raised the same fence, which would wait for itself', async () => {
    const { manager } = dataSource;
    const lock = { fencingToken: 3n };
    const managers = await fenced(manager, 'nested', lock, async (outer) => {
      const other = await fenced(manager, 'another', lock, async (inner) => inner);
      return fenced(manager, 'nested', lock, async (inner) => [inner === outer, other === outer]);
    });
    expect(managers).toEqual([true, false]);
  });

  it('S2: is asked for again when it loses to others before its work, which then runs once', async () => {
    const patient = await new DataSource({
      type,
      url: world.urlOf({}),
      poolSize: 20,
      ...(type === 'postgres' && { extra: { options: '-c default_transaction_isolation=repeatable\\ read' } }),
    }).initialize();
    const before = await stock();
    let runs = 0;
    // Each loses to all before it, and asks for two seconds at the most: more of them are too many for a busy machine.
    const buys = Array.from({ length: 8 }, () =>
      fenced(patient.manager, 'losers', { fencingToken: 7n }, (manager) => {
        runs += 1;
        return manager.query('update stock set left_over = left_over - 1');
      }),
    );
    await Promise.all(buys);
    await patient.destroy();
    expect([runs, await stock()]).toEqual([8, before - 8]);
  });

  it('goes down again', async () => {
    await dataSource.undoLastMigration();
    await expect(dataSource.query('select 1 from distributed_lock')).rejects.toThrow(/distributed_lock/u);
    await dataSource.runMigrations();
  });
});
