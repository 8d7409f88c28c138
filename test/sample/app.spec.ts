import { describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { LockService } from 'nestjs-distributed-lock';
import { LiveEvents } from '../../sample-app/live/live-events.js';
import { RestockJob } from '../../sample-app/sale/restock-job.js';
import { readSettings } from '../../sample-app/settings.js';
import { eventually } from '../support/eventually.js';
import { Sale } from './sale.js';

describe('two instances', () => {
  it('restock the endless sale once a period, and have one leader', async () => {
    await using one = await Sale.open({ LABEL: 'one' });
    await using other = await Sale.open({ LABEL: 'other' }, one.directory);
    const both = [one, other];
    const leadershipOf = ({ app }: Sale) => app.get(LockService).leadership('auditor');
    const told = (kind: string) =>
      both.flatMap(({ app }) => app.get(LiveEvents).recent).filter((event) => event.kind === kind);

    await Promise.all(both.map(({ app }) => app.get(RestockJob).run()));
    // The clock may have begun it before us.
    await eventually(() => expect(told('restocked')).toHaveLength(1));
    await expect(one.get('/sales/7')).resolves.toMatchObject({ stock: 100 });
    await one.app.get(DataSource).query('update sale set stock = 0');
    for (const { app } of both) await app.get(RestockJob).run();
    expect(told('restocked')).toHaveLength(1);
    await expect(one.get('/sales/7')).resolves.toMatchObject({ stock: 0 });

    const leading = await eventually(() => {
      const [first, second] = both.filter((sale) => leadershipOf(sale)?.isLeader === true);
      return first !== undefined && second === undefined && first;
    });
    const label = leading === one ? 'one' : 'other';
    for (const sale of both) await expect(leadershipOf(sale)?.leader()).resolves.toMatchObject({ label });
    expect(told('termBegan')).toMatchObject([{ key: 'auditor', token: expect.stringMatching(/^\d+$/u) }]);
  });
});

describe('UNSAFE=1', () => {
  it('oversells', async () => {
    await using sale = await Sale.open({ STOCK: '5', UNSAFE: '1' });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => sale.buy({ buyer: `buyer-${n}` })));
    expect(answers.filter(({ status }) => status === 201).length).toBeGreaterThan(5);
  });
});

describe('settings', () => {
  it('need nothing', () => {
    expect(readSettings({})).toMatchObject({ port: 3000, backend: 'sqlite', stock: 100, unsafe: false });
  });

  it.each([
    [{ LOCK_BACKEND: 'sqlite' }, 'data/sale.sqlite'],
    [{ LOCK_BACKEND: 'redis' }, 'data/sale.sqlite'],
    [{ LOCK_BACKEND: 'postgres', POSTGRES_URL: 'postgresql://db/shop' }, 'postgresql://db/shop'],
    [{ LOCK_BACKEND: 'mariadb-row', MARIADB_URL: 'mysql://db/shop' }, 'mysql://db/shop'],
    [{ LOCK_BACKEND: 'mariadb', MARIADB_URL: 'mysql://db/shop', SALE_DB: 'postgres://db/shop' }, 'postgres://db/shop'],
    [{ LOCK_BACKEND: 'redis', SALE_DB: 'mariadb://db/shop' }, 'mariadb://db/shop'],
  ])('put the sale beside the locks, unless told otherwise: %j', (env, saleDb) => {
    expect(readSettings(env)).toMatchObject({ saleDb });
  });

  it.each([
    [{ LOCK_BACKEND: 'paper' }, /^LOCK_BACKEND must be one of sqlite, .*memory; it was "paper"$/u],
    [{ LOCK_BACKEND: '' }, /^LOCK_BACKEND must be one of/u],
    [
      { LOCK_BACKEND: 'postgres', POSTGRES_URL: 'mysql://ann:secret@db/shop' },
      /^POSTGRES_URL must be postgres:[^ ]+$/u,
    ],
    [{ LOCK_BACKEND: 'mariadb-row', MARIADB_URL: 'ann:secret@db' }, /^MARIADB_URL must be mariadb:[^ ]+$/u],
    [{ LOCK_BACKEND: 'sqlite', SALE_DB: 'postgres://ann:secret@db/shop' }, /^SALE_DB must be a file$/u],
    [
      { LOCK_BACKEND: 'redis', SALE_DB: 'mongodb://ann:secret@db' },
      /^SALE_DB must be a file, or postgres:[^ ]+ or mar/u,
    ],
    [{ SALE_DB: '' }, /^SALE_DB must be a file$/u],
    [{ PORT: '70000' }, /^PORT must be a whole number from 0 to 65535; it was "70000"$/u],
    [{ STOCK: '0' }, /^STOCK must be a whole number/u],
    [{ STOCK: '1e3' }, /^STOCK must be a whole number/u],
    [{ UNSAFE: 'yes' }, /^UNSAFE must be one of 0, 1; it was "yes"$/u],
  ])('refuse %j and say why', (env, message) => {
    expect(() => readSettings(env)).toThrow(message);
    expect(() => readSettings(env)).not.toThrow('secret');
  });
});
