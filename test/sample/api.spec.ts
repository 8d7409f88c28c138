import { fenced } from 'nestjs-distributed-lock/typeorm';
import type { Order } from '../../sample-app/database/order.entity.js';
import { Transactions } from '../../sample-app/database/transactions.js';
import { describeWanted, Gate } from '../support/index.js';
import { Sale } from './sale.js';
import { DATABASES, type SaleServer, startSaleServer } from './sale-server.js';

const crowd = (size: number) => Array.from({ length: size }, (_, n) => ({ buyer: `buyer-${n}` }));

const growing = (tokens: readonly unknown[]): boolean => {
  const values = tokens.map((token) => BigInt(String(token)));
  return values.every((value, at) => at === 0 || value > (values[at - 1] ?? value));
};

describeWanted(DATABASES, 'the flash sale over HTTP, in %s', (type) => {
  let server: SaleServer;
  let sale: Sale;

  beforeAll(async () => {
    server = await startSaleServer(type);
  });

  afterAll(async () => server[Symbol.asyncDispose]());

  beforeEach(async () => {
    sale = await Sale.openShop(type, { ...(await server.settings()), STOCK: '10' });
  });

  afterEach(async () => {
    await sale[Symbol.asyncDispose]();
  });

  it('sells under a locked controller, an injected LockService and a locked service, with growing tokens', async () => {
    const answers = [
      await sale.buy({ buyer: 'a' }, '/sales/42/purchases'),
      await sale.buy({ buyer: 'b' }, '/sales/42/purchases/with-lock'),
      await sale.buy({ buyer: 'c' }, '/sales/42/purchases/by-service'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(answers[0]?.body).toEqual({
      id: 1,
      saleId: 42,
      buyer: 'a',
      fencingToken: expect.stringMatching(/^\d+$/u),
    });
    expect(growing(answers.map(({ body }) => body['fencingToken']))).toBe(true);
    await expect(sale.get('/sales/42')).resolves.toEqual({ id: 42, pieces: 10, stock: 7, version: 4 });
  });

  it('never sells more than there is, whichever way the buyers come', async () => {
    const ways = ['', '/with-lock', '/by-service'];
    const answers = await Promise.all(crowd(30).map((body, n) => sale.buy(body, `/sales/42/purchases${ways[n % 3]}`)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(20);
    const orders = await sale.get<Order[]>('/sales/42/orders');
    expect(orders).toHaveLength(10);
    expect(growing(orders.map(({ fencingToken }) => fencingToken))).toBe(true);
  });

  it('answers a buyer who asks again with the same order, also when sold out', async () => {
    const first = await sale.buy({ buyer: 'a' });
    await Promise.all(crowd(20).map((body) => sale.buy(body)));
    await expect(sale.buy({ buyer: 'a' })).resolves.toEqual(first);
    await expect(sale.buy({ buyer: 'late' })).resolves.toMatchObject({ status: 409, body: { message: /sold out/u } });
  });

  it.each([
    {},
    { buyer: '' },
    { buyer: '  ' },
    { buyer: 7 },
    { buyer: 'x'.repeat(101) },
    { buyer: 'a\0' },
    { buyer: ['a'] },
    [],
    null,
  ])('refuses %j as a purchase', async (body) => {
    await expect(sale.buy(body)).resolves.toMatchObject({ status: 400 });
    await expect(sale.get('/sales/42')).resolves.toMatchObject({ stock: 10 });
  });

  it('keeps hostile names as they are', async () => {
    const buyer = `'); drop table purchase; -- <script>alert(1)</script>\n__proto__`;
    await expect(sale.buy({ buyer })).resolves.toMatchObject({ status: 201, body: { buyer } });
    await expect(sale.get('/sales/42/orders')).resolves.toMatchObject([{ buyer }]);
  });

  it('takes names that look alike for different ones', async () => {
    for (const buyer of ['Ann', 'ann', 'ann ', 'änn']) await sale.buy({ buyer });
    await expect(sale.get('/sales/42/orders')).resolves.toHaveLength(4);
  });

  it('sells without a lock', async () => {
    const first = await sale.buy({ buyer: 'a' }, '/sales/42/purchases/optimistic');
    expect(first).toEqual({ status: 201, body: { id: 1, saleId: 42, buyer: 'a', fencingToken: null, retries: 0 } });
    await expect(sale.buy({ buyer: 'a' }, '/sales/42/purchases/optimistic')).resolves.toEqual(first);
    const answers = await Promise.all(crowd(20).map((body) => sale.buy(body, '/sales/42/purchases/optimistic')));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(9);
    await expect(sale.get('/sales/42')).resolves.toEqual({ id: 42, pieces: 10, stock: 0, version: 11 });
  });

  it('oversells without lock and version', async () => {
    const answers = await Promise.all(crowd(20).map((body) => sale.buy(body, '/sales/42/purchases/unsafe')));
    expect(answers.filter(({ status }) => status === 201).length).toBeGreaterThan(10);
  });

  it('knows no other sale', async () => {
    await expect(sale.buy({ buyer: 'a' }, '/sales/43/purchases')).resolves.toMatchObject({ status: 404 });
    await expect(sale.buy({ buyer: 'a' }, '/sales/x/purchases')).resolves.toMatchObject({ status: 400 });
  });

  it('refuses the write of a former holder, and sells nothing', async () => {
    const isFenced = new Gate();
    const paying = sale.nextPayment(isFenced.opened);
    const purchase = sale.buy({ buyer: 'a' });
    await paying;
    const newest = { fencingToken: 2n ** 62n };
    await sale.app.get(Transactions).run((manager) => fenced(manager, 'sale:42', newest, async () => undefined));
    isFenced.open();
    await expect(purchase).resolves.toMatchObject({ status: 409, body: { code: 'LOCK_STALE_FENCE' } });
    await expect(sale.get('/sales/42')).resolves.toMatchObject({ stock: 10 });
  });

  it('restocks under the same lock', async () => {
    await Promise.all(crowd(10).map((body) => sale.buy(body)));
    await expect(sale.post('/sales/42/restock', {})).resolves.toMatchObject({
      body: { id: 42, pieces: 20, stock: 10 },
    });
    await expect(sale.buy({ buyer: 'late' })).resolves.toMatchObject({ status: 201 });
  });
});
