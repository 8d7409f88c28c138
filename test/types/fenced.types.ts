/** Compiled, never run: what the compiler says about `@Fenced` and the manager it gives. */
import { applyDecorators, Get } from '@nestjs/common';
import { Locked } from 'nestjs-distributed-lock';
import { Fenced, fencedManager } from 'nestjs-distributed-lock/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import type { Observable } from 'rxjs';

class Ledger extends DataSource {}

export class Accepted {
  @Locked('lock_sale_:id')
  @Fenced('sale_:id')
  async below(_id: string): Promise<EntityManager> {
    return fencedManager();
  }

  @Fenced('sale_:id', { tableName: 'fence', dataSource: 'ledgerDataSource' })
  @Locked('lock_sale_:id')
  async above<T>(id: T): Promise<T> {
    return id;
  }

  @Locked('lock')
  @Fenced('sale', { dataSource: Ledger })
  token(): Promise<void> {
    return Promise.resolve();
  }

  @applyDecorators(Get(), Locked('lock'), Fenced('sale'))
  async applied(): Promise<void> {}
}

export class Refused {
  // @ts-expect-error a transaction takes time
  @Fenced('sale')
  synchronous(): string {
    return '';
  }

  @Locked('lock')
  // @ts-expect-error a transaction has an end, a stream may not
  @Fenced('sale')
  stream(): Observable<string> {
    throw new Error();
  }

  // @ts-expect-error a resource is a template
  @Fenced((id: string) => id)
  async key(_id: string): Promise<void> {}

  // @ts-expect-error there is no such option
  @Fenced('sale', { table: 'fence' })
  async option(): Promise<void> {}
}
