import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import { createApp } from '../../sample-app/create-app.js';
import { readSettings } from '../../sample-app/settings.js';

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** The sample application in this process, on a free port and a database of its own unless one is given. */
export class Sale implements AsyncDisposable {
  private constructor(
    readonly app: INestApplication,
    readonly url: string,
    readonly directory: string,
    private readonly ownsDirectory: boolean,
  ) {}

  static async open(env: Record<string, string> = {}, directory?: string): Promise<Sale> {
    const path = directory ?? (await mkdtemp(join(tmpdir(), 'sale-')));
    const settings = readSettings({ PORT: '0', PAYMENT_MS: '5', SALE_DB: join(path, 'sale.sqlite'), ...env });
    const app = await createApp(settings, ['fatal']);
    await app.listen(0, '127.0.0.1');
    return new Sale(app, await app.getUrl(), path, directory === undefined);
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
