/** Compiled, never run: what the compiler says about `@Locked` and its options. */
import { applyDecorators, Get, UseGuards } from '@nestjs/common';
import { DistributedLockModule, Locked, type LockHandle, type LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { Observable, Subject } from 'rxjs';

interface Order {
  readonly sku: string;
}

export class Accepted {
  @Locked('lock_sale_:id')
  async promise(id: string): Promise<string> {
    return id;
  }

  @Locked('lock_sale_:id', { waitMs: 5, service: 'ledger', onBusy: 'skip', ttlMs: 1_000 })
  observable(_id: string): Observable<string> {
    return new Observable();
  }

  @Locked(['a_:from', 'a_:to'], { onBusy: ({ error, args }) => [error.waitMs, args.length] })
  subject(_from: number, _to: number): Subject<string> {
    return new Subject();
  }

  @Locked((order: Order) => `lock_${order.sku}`)
  async key(order: Order, _count: number): Promise<Order> {
    return order;
  }

  @Locked((order: Order, extra?: string) => [order.sku, extra ?? 'none'])
  async keys(order: Order & { readonly more: boolean }): Promise<Order> {
    return order;
  }

  @applyDecorators(UseGuards(), Locked('lock'), Get())
  async applied(): Promise<void> {}

  @Locked('lock')
  async generic<T>(value: T): Promise<T> {
    return value;
  }
}

export class Refused {
  // @ts-expect-error a lock takes time: a synchronous method cannot wait for it
  @Locked('lock')
  synchronous(): string {
    return '';
  }

  // @ts-expect-error neither a promise nor an Observable
  @Locked('lock')
  *generator(): Generator<string> {
    yield '';
  }

  // @ts-expect-error the key function takes an order, the method a string
  @Locked((order: Order) => order.sku)
  async otherKey(_sku: string): Promise<void> {}

  // @ts-expect-error the key function needs more than the method is called with
  @Locked((order: Order, count: number) => `${order.sku}${count}`)
  async moreKey(_order: Order): Promise<void> {}

  // @ts-expect-error a key is a string
  @Locked((order: Order) => order.sku.length)
  async numberKey(_order: Order): Promise<void> {}

  // @ts-expect-error there is no such option
  @Locked('lock', { ttl: 5 })
  async option(): Promise<void> {}

  // @ts-expect-error throw, skip or a function
  @Locked('lock', { onBusy: 'ignore' })
  async busy(): Promise<void> {}

  // @ts-expect-error a key is missing
  @Locked()
  async keyless(): Promise<void> {}
}

export const modules = [
  DistributedLockModule.forRoot(memory()),
  DistributedLockModule.forRoot({ backend: memory(), defaults: { waitMs: 5 }, namespace: 'shop', isGlobal: false }),
  DistributedLockModule.forRoot({ backends: { default: memory(), ledger: memory() }, exceptionFilter: false }),
  DistributedLockModule.forRootAsync({ inject: ['URL'], useFactory: (_url: string) => memory() }),
  DistributedLockModule.forRootAsync({
    names: ['default', 'ledger'],
    useFactory: async () => ({ backends: { default: memory(), ledger: memory() } }),
  }),
  // @ts-expect-error one of them must be the default
  DistributedLockModule.forRoot({ backends: { ledger: memory() } }),
  // @ts-expect-error one or several, not both
  DistributedLockModule.forRoot({ backend: memory(), backends: { default: memory() } }),
  // @ts-expect-error no backend at all
  DistributedLockModule.forRoot({}),
  // @ts-expect-error names are read from the backends
  DistributedLockModule.forRoot({ backend: memory(), names: ['default'] }),
];

export async function service(locks: LockService): Promise<number> {
  const result: number = await locks.withLock('key', async (lock: LockHandle) => Number(lock.fencingToken));
  // @ts-expect-error the result is a number
  const wrong: string = await locks.withLock('key', () => result);
  return wrong.length;
}
