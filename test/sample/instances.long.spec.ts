import { wantedOf } from '../support/index.js';
import { Sale } from './sale.js';
import { DATABASES, startSaleServer } from './sale-server.js';
import '../support/slow-machine.js';

describe('instances that start at once', () => {
  for (const type of wantedOf(DATABASES)) {
    it(`share an empty database, in ${type}`, async () => {
      await using server = await startSaleServer(type);
      const env = { ...(await server.settings()), STOCK: '10' };
      const sales = await Promise.all([1, 2, 3].map(() => Sale.openShop(type, env)));
      const answers = await Promise.all(sales.map((sale, n) => sale.buy({ buyer: `buyer-${n}` })));
      await Promise.all(sales.map((sale) => sale[Symbol.asyncDispose]()));
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
    });
  }
});

describe('locks that are elsewhere', () => {
  for (const type of wantedOf(DATABASES)) {
    it(`protect a sale in ${type}`, async () => {
      await using server = await startSaleServer(type);
      await using sale = await Sale.openShop('memory', { ...(await server.settings()), STOCK: '5' });
      const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => sale.buy({ buyer: `buyer-${n}` })));
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
      await expect(sale.get('/sales/42')).resolves.toMatchObject({ stock: 0 });
    });
  }
});
