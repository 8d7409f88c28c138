import { Injectable } from '@nestjs/common';
import { Locked } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import {
  addTransactionalDataSource,
  initializeTransactionalContext,
  StorageDriver,
  Transactional,
} from 'typeorm-transactional';
import { providing } from './apps.js';
import { Crossing } from './crossing.js';
import { FencedShop, sellOne } from './fenced-shop.js';

initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE });

describe('@Locked above @Transactional of typeorm-transactional', () => {
  const shop = new FencedShop();

  it('takes the name of an argument, which the wrapper does not have', async () => {
    addTransactionalDataSource(shop.dataSource);
    @Injectable()
    class Sales {
      constructor(private readonly dataSource: DataSource) {}

      @Locked('sale_:id')
      @Transactional()
      async named(id: number): Promise<string> {
        return sellOne(this.dataSource.manager, id);
      }
    }
    const crossing = new Crossing();
    const app = await providing(crossing, shop.provider, Sales);
    expect(await app.get(Sales).named(7)).toBe('sold 7');
    expect([crossing.keys, await shop.stock(7)]).toEqual([['sale_7'], 9]);
  });
});
