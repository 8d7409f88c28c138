import { pid } from 'node:process';
import { Controller, Inject, type MessageEvent, Sse } from '@nestjs/common';
import {
  distinctUntilChanged,
  exhaustMap,
  ignoreElements,
  endWith,
  map,
  merge,
  type Observable,
  of,
  takeUntil,
  timer,
} from 'rxjs';
import { databaseType } from '../database/database-type.js';
import { Order } from '../database/order.entity.js';
import { Sale } from '../database/sale.entity.js';
import { Transactions } from '../database/transactions.js';
import { SETTINGS, type Settings } from '../settings.js';
import { LiveEvents } from './live-events.js';

const STATE_EVERY_MS = 200;

type SaleState = Pick<Sale, 'id' | 'pieces' | 'stock'> & { readonly sold: number };

/** Events for the page: `hello` once, `happened` for every event of this process, `sales` whenever they changed. */
@Controller()
export class LiveController {
  constructor(
    private readonly live: LiveEvents,
    private readonly transactions: Transactions,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  @Sse('events')
  events(): Observable<MessageEvent> {
    const { label, backend, saleDb, unsafe } = this.settings;
    const process = { label, backend, orders: databaseType(saleDb), unsafe, pid };
    const hello = of({ type: 'hello', data: { process, recent: this.live.recent } });
    const happened = this.live.stream.pipe(map((event) => ({ type: 'happened', data: event })));
    const sales = timer(0, STATE_EVERY_MS).pipe(
      exhaustMap(() => this.sales()),
      distinctUntilChanged((before, now) => JSON.stringify(before) === JSON.stringify(now)),
      map((data) => ({ type: 'sales', data })),
    );
    const end = this.live.stream.pipe(ignoreElements(), endWith(undefined));
    return merge(hello, happened, sales).pipe(takeUntil(end));
  }

  /** From the database, so it shows what other processes sold, too. */
  private sales(): Promise<SaleState[]> {
    return this.transactions.run(async (manager) => {
      const sales = await manager.find(Sale, { order: { id: 'asc' } });
      const sold = await Promise.all(sales.map(({ id }) => manager.countBy(Order, { saleId: id })));
      return sales.map(({ id, pieces, stock }, at) => ({ id, pieces, stock, sold: sold[at] ?? 0 }));
    });
  }
}
