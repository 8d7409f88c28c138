/** Compiled, never run: what the compiler says about `@Locked` and its options. */
import { applyDecorators, Get, UseGuards } from '@nestjs/common';
import {
  CurrentLock,
  DistributedLockModule,
  Locked,
  type LockedOptions,
  type LockHandle,
  type LockService,
} from 'nestjs-distributed-lock';
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

  @Locked('lock_sale_:id', { waitMs: 5, backend: 'ledger', onBusy: 'skip', ttlMs: 1_000 })
  observable(_id: string): Observable<string> {
    return new Observable();
  }

  @Locked(['a_:from', 'a_:to'], { onBusy: ({ error, args }) => [error.waitMs, args.length] })
  subject(_from: number, _to: number): Subject<number[]> {
    return new Subject();
  }

  @Locked([{ key: 'a_:from', mode: 'shared' }, 'a_:to', { key: 'calls', limit: 3, permits: 2 }])
  async claims(_from: number, _to: number): Promise<void> {}

  @Locked((order: Order) => [{ key: order.sku, mode: 'shared' }, 'stock'])
  async claimed(_order: Order): Promise<void> {}

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

const shared: LockedOptions = { waitMs: 0 };

export class AcceptedWhenBusy {
  @Locked('lock', { onBusy: 'skip' })
  async nothing(): Promise<void> {}

  @Locked('lock', { onBusy: 'skip' })
  async perhaps(): Promise<string | undefined> {
    return '';
  }

  @Locked('lock', { onBusy: 'skip' })
  async anything(): Promise<unknown> {
    return '';
  }

  @Locked('lock', { onBusy: 'skip' })
  generic<T>(value: T): Promise<T | undefined> {
    return Promise.resolve(value);
  }

  @Locked('lock', { onBusy: 'throw' })
  async thrown(): Promise<string> {
    return '';
  }

  @Locked('lock', { onBusy: ({ error }) => error.key })
  async instead(): Promise<string> {
    return '';
  }

  @Locked((id: string) => id, { onBusy: async ({ args }) => args.length })
  async later(_id: string): Promise<number> {
    return 0;
  }

  @Locked('lock', { onBusy: () => undefined })
  async noted(): Promise<void> {}

  @Locked('lock', {
    onBusy: () => {
      throw new Error('busy');
    },
  })
  async other(): Promise<string> {
    return '';
  }

  @Locked('lock', { onBusy: () => new Subject<string>() })
  stream(): Observable<string> {
    return new Observable();
  }

  @Locked('lock', shared)
  async shared(): Promise<string> {
    return '';
  }

  @Locked('lock')
  async current(_id: string, @CurrentLock() _lock?: LockHandle): Promise<void> {}

  @Locked('lock')
  protected async hidden(@CurrentLock() _lock: LockHandle | undefined): Promise<void> {}
}

export class RefusedWhenBusy {
  // @ts-expect-error a skipped call resolves to undefined
  @Locked('lock', { onBusy: 'skip' })
  async skipped(): Promise<string> {
    return '';
  }

  // @ts-expect-error a number is no string
  @Locked('lock', { onBusy: () => 42 })
  async number(): Promise<string> {
    return '';
  }

  // @ts-expect-error a promise of a number is none of a string
  @Locked((id: string) => id, { onBusy: async () => 42 })
  async promise(_id: string): Promise<string> {
    return '';
  }

  // @ts-expect-error nothing is no string
  @Locked('lock', { onBusy: () => {} })
  async nothing(): Promise<string> {
    return '';
  }

  // @ts-expect-error a number is no string
  @Locked('lock', { onBusy: () => 42 })
  stream(): Observable<string> {
    return new Observable();
  }
}

export class Refused {
  // @ts-expect-error a method of instances
  @Locked('lock')
  property = async (): Promise<void> => undefined;

  // @ts-expect-error a method of instances
  @Locked('lock')
  static async ofTheClass(): Promise<void> {}

  // @ts-expect-error no key at all
  @Locked([])
  async noKey(): Promise<void> {}

  @Locked('lock')
  // @ts-expect-error the lock is no string
  async current(@CurrentLock() _lock: string): Promise<void> {}

  // @ts-expect-error no such answer
  @Locked('lock', { onBusy: 5 })
  async five(): Promise<void> {}

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

  // @ts-expect-error there is no such mode
  @Locked(['a', { key: 'b', mode: 'shred' }])
  async mode(): Promise<void> {}

  // @ts-expect-error the time to live is that of all keys
  @Locked(['a', { key: 'b', ttlMs: 1_000 }])
  async time(): Promise<void> {}

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
    backends: ['default', 'ledger'],
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
