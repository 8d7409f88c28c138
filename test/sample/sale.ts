import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import { createApp } from '../../sample-app/create-app.js';
import { Payment } from '../../sample-app/sale/payment.js';
import { readSettings } from '../../sample-app/settings.js';
import { createShop } from '../../stampede/shop-process/create-shop.js';
import type { BackendName } from '../../stampede/shop-process/lock-backends.js';

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** The sale in this process, on a free port and a database of its own unless one is given. */
export class Sale implements AsyncDisposable {
  private constructor(
    readonly app: INestApplication,
    readonly url: string,
    readonly directory: string,
    private readonly ownsDirectory: boolean,
  ) {}

  /** Opens the sample application, which is on SQLite. */
  static open(env: Record<string, string> = {}, directory?: string): Promise<Sale> {
    return Sale.#open((defaults) => createApp(readSettings({ ...defaults, ...env }), ['fatal']), directory);
  }

  /** Opens the application of the stampede, which is on any backend. */
  static openShop(backend: BackendName, env: Record<string, string>): Promise<Sale> {
    return Sale.#open((defaults) => createShop(backend, { ...defaults, ...env }, ['fatal']));
  }

  static async #open(
    create: (env: Record<string, string>) => Promise<INestApplication>,
    directory?: string,
  ): Promise<Sale> {
    const path = directory ?? (await mkdtemp(join(tmpdir(), 'sale-')));
    try {
      const app = await create({ PAYMENT_MS: '5', SALE_DB: join(path, 'sale.sqlite') });
      await app.listen(0, '127.0.0.1');
      return new Sale(app, await app.getUrl(), path, directory === undefined);
    } catch (error) {
      if (directory === undefined) await rm(path, { recursive: true });
      throw error;
    }
  }

  /**
   * Resolves when a payment begins: its process has the lock, and has read the stock and not written it yet. The payment
   * goes on when `mayEnd` resolves.
   */
  nextPayment(mayEnd?: Promise<void>): Promise<void> {
    const payment = this.app.get(Payment, { strict: false });
    const take = payment.take.bind(payment);
    return new Promise((resolve) => {
      payment.take = async (saleId, buyer) => {
        resolve();
        await mayEnd;
        return take(saleId, buyer);
      };
    });
  }

  buy(body: unknown, path = '/sales/42/purchases'): Promise<Answer> {
    return this.post(path, body);
  }

  async post(path: string, body: unknown): Promise<Answer> {
    const response = await fetch(this.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  }

  async get<T>(path: string): Promise<T> {
    const response = await fetch(this.url + path);
    return (await response.json()) as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app.close();
    if (this.ownsDirectory) await rm(this.directory, { recursive: true });
  }
}
