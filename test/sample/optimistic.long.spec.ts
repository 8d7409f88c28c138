import { wantedOf } from '../support/index.js';
import { Sale } from './sale.js';
import { startSaleServer } from './sale-server.js';
import '../support/slow-machine.js';

const BUYERS = 200;
/** SQLite is left to the stampede: inside one process its driver runs one transaction after the other. */
const SERVERS = ['postgres', 'mariadb'] as const;

describe('POST /sales/:id/purchases/optimistic', () => {
  for (const type of wantedOf(SERVERS)) {
    it(`loses no update of ${BUYERS} buyers at once in two instances, in ${type}`, async () => {
      await using server = await startSaleServer(type);
      const env = { ...(await server.settings()), STOCK: '1000', PAYMENT_MS: '0' };
      await using first = await Sale.openShop(type, env);
      await using second = await Sale.openShop(type, env);

      const answers = await Promise.all(
        Array.from({ length: BUYERS }, (_, n) =>
          (n % 2 === 0 ? first : second).buy({ buyer: `buyer-${n}` }, '/sales/42/purchases/optimistic'),
        ),
      );

      const retries = answers.map(({ body }) => Number(body['retries']));
      const total = retries.reduce((sum, each) => sum + each, 0);
      process.stdout.write(
        `${type}: ${BUYERS} buyers at once: ${total} retries, at most ${Math.max(...retries)} each\n`,
      );

      expect(answers.filter(({ status }) => status !== 201)).toEqual([]);
      expect(new Set(answers.map(({ body }) => body['id'])).size).toBe(BUYERS);
      await expect(first.get('/sales/42')).resolves.toEqual({
        id: 42,
        pieces: 1000,
        stock: 1000 - BUYERS,
        version: 1 + BUYERS,
      });
    });
  }
});
