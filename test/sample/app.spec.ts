import { LockService } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import { RestockJob } from '../../sample-app/jobs/restock-job.js';
import { readSettings } from '../../sample-app/settings.js';
import { makeDatabaseOptions } from '../../stampede/shop-process/database-options.js';
import { eventually } from '../support/eventually.js';
import { Sale } from './sale.js';

describe('two instances', () => {
  it('restock the endless sale once a period, and have one leader', async () => {
    await using one = await Sale.open({ LABEL: 'one' });
    await using other = await Sale.open({ LABEL: 'other' }, one.directory);
    const both = [one, other];
    const leadershipOf = ({ app }: Sale) => app.get(LockService).leadership('auditor');

    await Promise.all(both.map(({ app }) => app.get(RestockJob, { strict: false }).run()));
    // The clock may have begun it before us.
    await eventually(async () => expect(await one.get('/sales/7')).toMatchObject({ pieces: 100, stock: 100 }));
    await one.app.get(DataSource).query('update sale set stock = 0');
    for (const { app } of both) await app.get(RestockJob, { strict: false }).run();
    await expect(one.get('/sales/7')).resolves.toMatchObject({ pieces: 100, stock: 0 });

    const leading = await eventually(() => {
      const [first, second] = both.filter((sale) => leadershipOf(sale)?.isLeader === true);
      return first !== undefined && second === undefined && first;
    });
    const label = leading === one ? 'one' : 'other';
    for (const sale of both) await expect(leadershipOf(sale)?.leader()).resolves.toMatchObject({ label });
    const terms = both.flatMap(({ app }) => app.get(LockService).inspect()).filter(({ leads }) => leads);
    expect(terms).toMatchObject([{ key: 'auditor' }]);
  });
});

describe('the inspector of the sample', () => {
  it('shows who has the lock of the sale while a payment is taken', async () => {
    await using sale = await Sale.open({ LABEL: 'api-1', PAYMENT_MS: '500' });
    const paying = sale.nextPayment();
    const purchase = sale.buy({ buyer: 'a' });
    await paying;
    expect(JSON.stringify(await sale.get('/locks/state'))).toMatch(/lock_sale_42.*api-1/u);
    await expect(purchase).resolves.toMatchObject({ status: 201 });
  });
});

describe('settings', () => {
  it('need nothing', () => {
    expect(readSettings({})).toMatchObject({ port: 3000, saleDb: 'data/sale.sqlite', stock: 100 });
  });

  it.each([
    [{ PORT: '70000' }, /^PORT must be a whole number from 0 to 65535; it was "70000"$/u],
    [{ STOCK: '0' }, /^STOCK must be a whole number/u],
    [{ STOCK: '1e3' }, /^STOCK must be a whole number/u],
  ])('refuse %j and say why', (env, message) => {
    expect(() => readSettings(env)).toThrow(message);
  });

  it.each(['', 'postgres://ann:secret@db/shop'])('name no other database than a file: %j', async (SALE_DB) => {
    const refusal = await Sale.open({ SALE_DB }).then(String, String);
    expect(refusal).toBe('Error: SALE_DB must be the path of a SQLite file');
  });
});

describe('the database of a stampede', () => {
  it.each([
    ['sale.sqlite', 'better-sqlite3'],
    ['postgresql://db/shop', 'postgres'],
    ['mysql://db/shop', 'mariadb'],
  ])('%s is of type %s', (database, type) => {
    expect(makeDatabaseOptions(database)).toMatchObject({ type });
  });

  it.each(['', 'mongodb://ann:secret@db'])('is no %j', (database) => {
    expect(() => makeDatabaseOptions(database)).toThrow(/^a database is a file, or a URL of PostgreSQL or MariaDB$/u);
  });
});
