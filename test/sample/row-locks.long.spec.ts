import { DataSource } from 'typeorm';
import { describeWanted } from '../support/wanted-backends.js';
import { Sale } from './sale.js';
import { type SaleServer, startSaleServer } from './sale-server.js';

/** Ends whoever has a transaction open, but us. */
const CUT = {
  postgres: async (dataSource: DataSource) => {
    await dataSource.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'`,
    );
  },
  mariadb: async (dataSource: DataSource) => {
    const rows: { id: number }[] = await dataSource.query(
      'select trx_mysql_thread_id as id from information_schema.innodb_trx where trx_mysql_thread_id <> connection_id()',
    );
    for (const { id } of rows) await dataSource.query(`kill ${id}`);
  },
};

describeWanted(['postgres', 'mariadb'], 'a sale under row locks, in %s', (type) => {
  let server: SaleServer;
  let env: Record<string, string>;

  beforeAll(async () => {
    server = await startSaleServer(type);
    env = { ...(await server.settings()), STOCK: '10' };
  });

  afterAll(async () => server[Symbol.asyncDispose]());

  it('writes in the transaction of the lock, and nothing when that is cut', async () => {
    await using sale = await Sale.openShop(`${type}-row`, { ...env, PAYMENT_MS: '2000' });
    const paying = sale.nextPayment();
    const purchase = sale.buy({ buyer: 'a' });
    await paying;
    await CUT[type](sale.app.get(DataSource));
    await expect(purchase).resolves.toMatchObject({ status: 500 });
    await expect(sale.get('/sales/42')).resolves.toMatchObject({ stock: 10 });
    await expect(sale.buy({ buyer: 'a' })).resolves.toMatchObject({ status: 201 });
    await expect(sale.get('/sales/42')).resolves.toMatchObject({ stock: 9 });
  });

  it('sells no more than there is when the sale is in another database', async () => {
    await using files = await startSaleServer('sqlite');
    const { SALE_DB = '' } = await files.settings();
    await using sale = await Sale.openShop(`${type}-row`, { ...env, SALE_DB, STOCK: '5' });
    const answers = await Promise.all(Array.from({ length: 15 }, (_, n) => sale.buy({ buyer: `buyer-${n}` })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
    await expect(sale.get('/sales/42')).resolves.toMatchObject({ stock: 0 });
  });
});
