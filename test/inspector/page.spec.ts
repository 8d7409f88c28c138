import type { CanActivate, ExecutionContext, INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLockModule, LockService } from 'nestjs-distributed-lock';
import { LockInspectorModule, type InspectorState } from 'nestjs-distributed-lock/inspector';
import { redis } from 'nestjs-distributed-lock/redis';
import type { Browser, Page } from 'playwright-core';
import { eventually, Holder, RedisServer } from '../support/index.js';
import { describeInChromium, launchChromium } from '../support/chromium.js';

const ON_CALL = { authorization: 'Bearer on-call' };
const KEY = 'sale_42';
/** Told by the renewal that comes next. */
const OPTIONS = { ttlMs: 6_000, waitMs: 20_000 };

const guard: CanActivate = {
  canActivate: (context: ExecutionContext) =>
    context.switchToHttp().getRequest<{ headers: object }>().headers['authorization' as never] ===
    ON_CALL.authorization,
};

describe('the inspector of one process, and a key of another', () => {
  let server: RedisServer;
  let app: INestApplication;
  let other: Holder;
  let locks: LockService;
  let url: string;

  beforeAll(async () => {
    server = await RedisServer.start();
    const lockModule = DistributedLockModule.forRoot({
      backend: redis({ url: server.url }),
      logger: false,
      label: 'api-1',
    });
    class AppModule {
      readonly own = true;
    }
    const module = { module: AppModule, imports: [lockModule, LockInspectorModule.forRoot({ guard })] };
    app = await NestFactory.create(module, { logger: false, forceCloseConnections: true });
    await app.listen(0, '127.0.0.1');
    url = `${await app.getUrl()}/locks`;
    locks = app.get(LockService);
    other = await Holder.start({ backend: 'redis', mode: 'queue', url: server.url });
  });
  afterAll(async () => {
    await other[Symbol.asyncDispose]();
    await app.close();
    await server.stop();
  });

  /** Has the other process hold the key and this one wait for it. @param free frees the key, and tells when it did */
  async function freeing(free: (pid: number) => Promise<bigint>): Promise<void> {
    const { fencingToken } = await other.acquire(KEY, OPTIONS);
    const waiting = locks.acquire(KEY, OPTIONS);
    await eventually(async () => expect((await locks.look(KEY)).waiters).toHaveLength(1));
    const freed = await free(other.child.pid);
    await using next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(fencingToken);
    const loss = await other.child.call('loss', KEY);
    expect(loss?.reason).toMatch(/LockLostError/u);
    const ms = Number((loss?.at ?? 0n) - freed) / 1e6;
    process.stdout.write(`freed by hand; the signal of the holder aborted ${ms.toFixed(0)} ms later\n`);
  }

  it('is freed by a request that the guard lets in, and by no other', async () => {
    await freeing(async (pid) => {
      const response = await fetch(`${url}/state`, { headers: ON_CALL });
      const { backends } = (await response.json()) as InspectorState;
      const holder = backends[0]?.keys.find(({ key }) => key === KEY)?.holder;
      expect(holder).toMatchObject({ pid });
      const body = JSON.stringify({ backend: 'default', key: KEY, owner: holder?.owner });
      const headers = { 'content-type': 'application/json', origin: new URL(url).origin };
      const evict = (more: object) => fetch(`${url}/evict`, { method: 'POST', headers: { ...headers, ...more }, body });
      expect((await evict({})).status).toBe(403);
      expect((await locks.look(KEY)).holder).toMatchObject({ pid });
      const freed = process.hrtime.bigint();
      expect((await evict(ON_CALL)).status).toBe(200);
      return freed;
    });
  });

  describeInChromium('in Chromium', () => {
    let browser: Browser;
    let page: Page;
    const complaints: string[] = [];

    beforeAll(async () => {
      browser = await launchChromium();
    });
    afterAll(() => browser.close());
    afterEach(async () => {
      await page.close();
      expect(complaints.splice(0)).toEqual([]);
    });

    async function open(): Promise<void> {
      page = await browser.newPage({ extraHTTPHeaders: ON_CALL });
      page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.goto(url);
      await page.locator('#connection[data-state=live]').waitFor();
    }

    const shows = (selector: string, expected: string | RegExp): Promise<void> =>
      eventually(async () => expect(await page.locator(selector).innerText()).toMatch(expected), { withinMs: 20_000 });
    const press = async (...keys: string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const focused = () =>
      page.evaluate('document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent');

    it('is shown with both processes and freed by the keyboard alone', async () => {
      await using _lock = await locks.acquire('restock');
      await freeing(async (pid) => {
        await open();
        await shows('#held', /^2$/u);
        await shows('#keys', new RegExp(`${KEY}[^]*:${pid}[^]*restock[^]*api-1 · [^]*:${process.pid}`, 'u'));
        await press('/');
        await page.keyboard.type('sale');
        await shows('#held', /^1$/u);
        await press('Tab', 'Tab', 'Tab', 'Enter');
        await shows('td.details', new RegExp(`first come first\\s+api-1 · .*:${process.pid}`, 'u'));
        await press('Tab');
        await expect(focused()).resolves.toBe(`Free ${KEY} …`);
        await press('Enter');
        await shows('#confirm', `:${pid} holds it`);
        await expect(focused()).resolves.toBe('Leave it');
        expect((await locks.look(KEY)).holder).toMatchObject({ pid });
        await press('Tab');
        const freed = process.hrtime.bigint();
        await press('Enter');
        await shows('#notice', `${KEY} is taken from `);
        await shows('#troubles', new RegExp(`evicted ${KEY} taken from .*:${pid}`, 'u'));
        return freed;
      });
    });

    it('stays when who was asked twice says no', async () => {
      await using lock = await locks.acquire('kept');
      await open();
      await page.getByRole('button', { name: 'Free kept …' }).click();
      await press('Enter');
      await page.locator('#confirm').waitFor({ state: 'hidden' });
      await press('Escape');
      expect((await locks.look('kept')).holder).toBeDefined();
      expect(lock.isHeld).toBe(true);
    });

    it('is told from one that looks alike, and is short until it is opened', async () => {
      const keys = ['a\u200bb', 'ab', 'a\u202eb', 'a\nb', 'a b', String.raw`a\u{200B}b`, 'long '.repeat(80).trim()];
      const held = await Promise.all(keys.map((key) => locks.acquire(key)));
      await open();
      await eventually(async () => expect(await page.locator('button.key').count()).toBe(keys.length));
      const shown = await page.locator('button.key').allTextContents();
      expect(shown.toSorted()).toEqual(
        [
          String.raw`a\u{200B}b`,
          'ab',
          String.raw`a\u{202E}b`,
          String.raw`a\u{A}b`,
          'a b',
          String.raw`a\\u{200B}b`,
          `${'long '.repeat(10)}…${' long'.repeat(5)}`,
        ].toSorted(),
      );
      await page.getByRole('button', { name: /^long/u }).click();
      await shows('code.whole', 'long '.repeat(80).trim());
      await Promise.all(held.map((lock) => lock.release()));
    });

    it('is live again after a proxy could not reach the application', async () => {
      await open();
      const events = '**/locks/events';
      await page.route(events, (route) => route.fulfill({ status: 502 }));
      await page.reload();
      await page.locator('#connection[data-state=lost]').waitFor();
      await page.unroute(events);
      await page.locator('#connection[data-state=live]').waitFor();
      expect(complaints.splice(0).join()).toMatch(/ 502 /u);
    });

    it('is text, whatever it is called, among a thousand', async () => {
      const hostile = '<img src=x onerror=alert(1)>';
      const held = await Promise.all(
        [hostile, ...Array.from({ length: 999 }, (_, i) => `job:${i}`)].map((key) => locks.acquire(key)),
      );
      await open();
      await shows('#held', /^1,000$/u);
      await page.locator('#search').fill('<img');
      await shows('#keys tbody', hostile);
      await page.getByRole('button', { name: hostile, exact: true }).click();
      await shows('td.details', `template ${hostile.replace('1', '*')}`);
      await expect(page.locator('img').count()).resolves.toBe(0);
      await Promise.all(held.map((lock) => lock.release()));
      await page.locator('#search').fill('');
      await shows('#empty', 'No key is held.');
    });
  });
});
