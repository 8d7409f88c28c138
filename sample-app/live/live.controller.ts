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
import { type Holder, LockService } from 'nestjs-distributed-lock';
import { databaseType } from '../database/database-type.js';
import { Order } from '../database/order.entity.js';
import { Sale } from '../database/sale.entity.js';
import { Transactions } from '../database/transactions.js';
import { LOCK_BACKENDS } from '../lock-backends.js';
import { SETTINGS, type Settings } from '../settings.js';
import { LiveEvents } from './live-events.js';

const SALES_EVERY_MS = 200;
const LEADER_EVERY_MS = 1_000;

type SaleState = Pick<Sale, 'id' | 'pieces' | 'stock'> & { readonly sold: number };

interface LeaderState {
  /** The fencing token of the term, where this process leads. */
  readonly token: string | undefined;
  readonly holder?: Holder | undefined;
  /** Why nobody can tell who leads. */
  readonly problem?: string;
}

/** Events for the page: `hello` once, `happened` for every event of this process, `sales` and `leader` whenever they changed. */
@Controller()
export class LiveController {
  constructor(
    private readonly live: LiveEvents,
    private readonly transactions: Transactions,
    private readonly locks: LockService,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  @Sse('events')
  events(): Observable<MessageEvent> {
    const { label, backend, saleDb, unsafe } = this.settings;
    const restocks = !LOCK_BACKENDS[backend].endsWithConnection;
    const process = { label, backend, orders: databaseType(saleDb), unsafe, restocks, pid };
    const hello = of({ type: 'hello', data: { process, recent: this.live.recent } });
    const happened = this.live.stream.pipe(map((event) => ({ type: 'happened', data: event })));
    const sales = changesOf('sales', SALES_EVERY_MS, () => this.sales());
    const leader = changesOf('leader', LEADER_EVERY_MS, () => this.leader());
    const end = this.live.stream.pipe(ignoreElements(), endWith(undefined));
    return merge(hello, happened, sales, leader).pipe(takeUntil(end));
  }

  /** From the database, so it shows what other processes sold, too. */
  private sales(): Promise<SaleState[]> {
    return this.transactions.run(async (manager) => {
      const sales = await manager.find(Sale, { order: { id: 'asc' } });
      const sold = await Promise.all(sales.map(({ id }) => manager.countBy(Order, { saleId: id })));
      return sales.map(({ id, pieces, stock }, at) => ({ id, pieces, stock, sold: sold[at] ?? 0 }));
    });
  }

  /** Row locks tell of this process only: there `leader()` rejects. */
  private async leader(): Promise<LeaderState> {
    const token = this.locks
      .inspect()
      .find(({ leads }) => leads)
      ?.fencingToken.toString();
    try {
      return { token, holder: await this.locks.leadership('auditor')?.leader() };
    } catch (error) {
      return { token, problem: error instanceof Error ? error.message : String(error) };
    }
  }
}

function changesOf(type: string, everyMs: number, read: () => Promise<object>): Observable<MessageEvent> {
  return timer(0, everyMs).pipe(
    exhaustMap(read),
    distinctUntilChanged((before, now) => JSON.stringify(before) === JSON.stringify(now)),
    map((data) => ({ type, data })),
  );
}
