import { rowManager } from 'nestjs-distributed-lock/typeorm';
import { describeServers, SqlWorld } from './sql-world.js';

const STRATEGIES = ['lease', 'row', 'session'] as const;

/** Of all new sessions, and how they are taken back. */
const SETTINGS = {
  postgres: ['serializable', 'repeatable read'].map((level) => [
    `alter database postgres set default_transaction_isolation = '${level}'`,
    'alter database postgres reset default_transaction_isolation',
  ]),
  mariadb: [
    ['set global autocommit = 0', 'set global autocommit = 1'],
    ['set global completion_type = 1', 'set global completion_type = 0'],
    ['set global completion_type = 2', 'set global completion_type = 0'],
    [`set global tx_isolation = 'SERIALIZABLE'`, `set global tx_isolation = 'REPEATABLE-READ'`],
  ],
};

describeServers('a server whose sessions begin with', (world, type) => {
  beforeAll(async () => {
    await world.ask('create table stock (remaining integer not null)');
    await world.ask('insert into stock values (100)');
  });

  for (const [setting = '', reset = ''] of SETTINGS[type]) {
    describe(setting, () => {
      beforeAll(() => world.ask(setting));
      afterEach(() => world.endTest());
      afterAll(() => world.ask(reset));

      it.each(STRATEGIES)('locks as any other does: %s', async (strategy) => {
        const options = { strategy, synchronize: false, ...(strategy === 'row' ? { poolSize: 3 } : {}) };
        const [ours, theirs] = [world.service(options), world.service(options)];
        for (let round = 0; round < 3; round += 1) {
          const lock = await ours.acquire('k');
          await expect(theirs.tryAcquire('k')).resolves.toBeNull();
          const waiting = theirs.acquire('k', { waitMs: 10_000 });
          await lock.release();
          const next = await waiting;
          expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
          await next.release();
        }
        if (strategy === 'row') await sells(ours);
      });
    });
  }

  /** What the holder of a row writes is there for everybody once the method has ended. */
  const sells = async (service: ReturnType<SqlWorld['service']>): Promise<void> => {
    const remaining = async () => Number((await world.ask('select remaining from stock'))[0]?.['remaining']);
    const before = await remaining();
    for (let sale = 0; sale < 3; sale += 1) {
      await service.withLock('sale', (lock) => rowManager(lock).query('update stock set remaining = remaining - 1'));
    }
    expect(await remaining()).toBe(before - 3);
  };
});
