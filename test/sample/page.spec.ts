import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
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
    await page.locator('.dot.live').waitFor();
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

  it('shows stock, holder, token and time line of a purchase', async () => {
    await open();
    await shows('#process-name', `api-1 (pid ${process.pid}) · locks in sqlite, orders in sqlite`);
    await shows('#stock', /^60$/u);
    await shows('#leader', `api-1 (pid ${process.pid}) leads`);
    await shows('#term', /^\d+$/u);
    await page.getByRole('button', { name: 'Buy one' }).click();
    await shows('#stock', /^59$/u);
    await shows('#sold', /^1$/u);
    await shows('#holder', `api-1 (pid ${process.pid})`);
    const [order] = await sale.get<{ fencingToken: string; buyer: string }[]>('/sales/42/orders');
    await shows('#token', String(order?.fencingToken));
    await shows('#answer', `order 1 for ${order?.buyer}`);
    await shows('#lock-state', /^free$/u);
    const ofTheSale = page.locator('#events li', { hasText: /sale[_ ]42/u });
    await expect(ofTheSale.locator('b').allInnerTexts()).resolves.toEqual(['released', 'sold', 'paying', 'acquired']);
  });

  it('shows who waits while fifty buy at once', async () => {
    await open({ PAYMENT_MS: '20' });
    await page.getByRole('button', { name: '50 buyers' }).click();
    await shows('#waiters', /^[1-9]\d$/u);
    await shows('#lock-state', /^held$/u);
    await shows('#answer', '50 of 50 buyers got one');
    await shows('#stock', /^10$/u);
    await shows('#waiters', /^0$/u);
  });

  it('shows names as text', async () => {
    await open();
    await page.locator('#buyer').fill('<img src=x onerror=alert(1)>');
    await page.getByRole('button', { name: 'Buy one' }).click();
    await shows('#events', /to <img src=x onerror=alert\(1\)>/u);
    await expect(page.locator('#events img').count()).resolves.toBe(0);
  });

  it('shows what others bought and what happened before it was opened', async () => {
    await open();
    await sale.buy({ buyer: 'somebody else' });
    await shows('#stock', /^59$/u);
    await page.reload();
    await shows('#events', /order 1 of sale 42 to somebody else/u);
    await shows('#holder', 'api-1');
  });

  it('warns of UNSAFE=1', async () => {
    await open({ UNSAFE: '1' });
    await page.locator('#unsafe').waitFor();
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
