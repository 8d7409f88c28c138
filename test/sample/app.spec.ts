import { describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { LiveEvents } from '../../sample-app/live/live-events.js';
import { Restock } from '../../sample-app/sale/restock.js';
import { readSettings } from '../../sample-app/settings.js';
import { Sale } from './sale.js';

describe('the restock job', () => {
  it('works on one of two instances at a time, and on the endless sale only', async () => {
    await using one = await Sale.open();
    await using other = await Sale.open({}, one.directory);
    await one.app.get(DataSource).query('update sale set stock = 0');
    await Promise.all([one, other, one, other].map(({ app }) => app.get(Restock).run()));
    const restocks = [one, other]
      .flatMap(({ app }) => app.get(LiveEvents).recent)
      .filter(({ kind }) => kind === 'restocked');
    expect(restocks).toHaveLength(1);
    await expect(one.get('/sales/7')).resolves.toMatchObject({ stock: 100 });
    await expect(one.get('/sales/42')).resolves.toMatchObject({ stock: 0 });
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
