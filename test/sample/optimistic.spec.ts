import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Order } from '../../sample-app/database/order.entity.js';
import { wantedOf } from '../backends/describe-backend.js';
import { type CompiledSample, compileSample } from './compiled-sample.js';
import { startSaleProcess } from './sale-process.js';
import { DATABASES, startSaleServer } from './sale-server.js';

const BUYERS = 200;

describe('POST /sales/:id/purchases/optimistic', () => {
  let sample: CompiledSample;

  beforeAll(async () => {
    sample = await compileSample();
  });

  afterAll(async () => sample[Symbol.asyncDispose]());

  for (const type of wantedOf(DATABASES)) {
    it(`loses no update of ${BUYERS} buyers at once in two processes, in ${type}`, async () => {
      await using server = await startSaleServer(type);
      const env = { ...(await server.settings()), STOCK: '1000', PAYMENT_MS: '0' };
      await using first = await startSaleProcess(sample.main, env);
      await using second = await startSaleProcess(sample.main, env);

      const answers = await Promise.all(
        Array.from({ length: BUYERS }, (_, n) => buy(n % 2 === 0 ? first.url : second.url, `buyer-${n}`)),
      );

      const retries = answers.map((answer) => answer.order.retries);
      const total = retries.reduce((sum, each) => sum + each, 0);
      process.stdout.write(
        `${type}: ${BUYERS} buyers at once: ${total} retries, at most ${Math.max(...retries)} each\n`,
      );

      expect(answers.filter(({ status }) => status !== 201)).toEqual([]);
      expect(new Set(answers.map(({ order }) => order.id)).size).toBe(BUYERS);
      const sale: unknown = await (await fetch(`${first.url}/sales/42`)).json();
      expect(sale).toEqual({ id: 42, pieces: 1000, stock: 1000 - BUYERS, version: 1 + BUYERS });
    }, 180_000);
  }
});

interface Purchase {
  readonly status: number;
  readonly order: Order & { readonly retries: number };
}

async function buy(url: string, buyer: string): Promise<Purchase> {
  const response = await fetch(`${url}/sales/42/purchases/optimistic`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ buyer }),
  });
  return { status: response.status, order: (await response.json()) as Purchase['order'] };
}
