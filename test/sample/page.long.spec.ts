import type { Browser, Page } from 'playwright-core';
import { describeInChromium, launchChromium } from '../support/chromium.js';
import { eventually } from '../support/eventually.js';
import { Sale } from './sale.js';

describeInChromium('the page, in Chromium', () => {
  let browser: Browser;
  let sale: Sale;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    browser = await launchChromium();
  });

  afterAll(() => browser.close());

  const open = async (env: Record<string, string> = {}): Promise<void> => {
    sale = await Sale.open({ STOCK: '60', LABEL: 'api-1', ...env });
    page = await browser.newPage();
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(sale.url);
  };

  const shows = (selector: string, expected: string | RegExp): Promise<void> =>
    eventually(async () => expect(await page.locator(selector).innerText()).toMatch(expected), { withinMs: 20_000 });

  beforeEach(() => {
    complaints = [];
  });

  afterEach(async () => {
    await page.close();
    await sale[Symbol.asyncDispose]();
    expect(complaints).toEqual([]);
  });

  it('shows stock, order and token of a purchase', async () => {
    await open();
    await shows('#stock', /^60$/u);
    await page.getByRole('button', { name: 'Buy one' }).click();
    await shows('#stock', /^59$/u);
    await shows('#sold', /^1$/u);
    const [order] = await sale.get<{ fencingToken: string; buyer: string }[]>('/sales/42/orders');
    await shows('#answer', `order 1 for ${order?.buyer}`);
    await shows('#orders', `${order?.buyer}\t${order?.fencingToken}`);
  });

  it('sells to fifty who buy at once, and leads to the inspector that shows the lock', async () => {
    await open({ PAYMENT_MS: '20' });
    await page.getByRole('button', { name: '50 buyers' }).click();
    await shows('#answer', '50 of 50 buyers got one');
    await shows('#stock', /^10$/u);
    await page.getByRole('link', { name: 'Who has the lock' }).click();
    await shows('body', /lock_sale_42/u);
  });

  it('shows names as text, also of buyers from elsewhere', async () => {
    await open();
    await sale.buy({ buyer: '<img src=x onerror=alert(1)>' });
    await shows('#orders', '<img src=x onerror=alert(1)>');
    await expect(page.locator('#orders img').count()).resolves.toBe(0);
    await shows('#stock', /^59$/u);
  });

  it('tells how many pieces are sold twice when they are sold without a lock', async () => {
    await open();
    await page.getByLabel('Way to buy').selectOption('with neither: oversells');
    await page.getByRole('button', { name: '50 buyers' }).click();
    await shows('#oversold', /\d+ of them twice/u);
  });

  it('sells out and is restocked', async () => {
    await open({ STOCK: '1' });
    await page.getByRole('button', { name: 'Buy one' }).click();
    await shows('#stock', /^0$/u);
    complaints = [];
    await page.getByRole('button', { name: 'Restock' }).click();
    await shows('#answer', '1 pieces again');
    await shows('#stock', /^1$/u);
  });
});
