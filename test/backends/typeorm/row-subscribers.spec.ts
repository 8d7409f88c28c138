import { rowManager } from 'nestjs-distributed-lock/typeorm';
import { DataSource, EntitySchema, type EntitySubscriberInterface, type InsertEvent } from 'typeorm';
import { describeServers } from './sql-world.js';

const Sale = new EntitySchema<{ id: number }>({
  name: 'subscribed_sale',
  columns: { id: { type: Number, primary: true } },
});

describeServers("subscribers of the application's data source", (world, type) => {
  let dataSource: DataSource;
  beforeAll(() => world.ask('create table subscribed_sale (id integer primary key)'));
  afterEach(() => dataSource.destroy());

  it.each(['before', 'after'] as const)(
    'hear of writes through a row lock when added %s the first lock',
    async (when) => {
      dataSource = await new DataSource({ type, url: world.url, entities: [Sale] }).initialize();
      const insertedIds: number[] = [];
      const subscriber: EntitySubscriberInterface = {
        afterInsert: ({ entity }: InsertEvent<{ id: number }>) => void insertedIds.push(entity.id),
      };
      const id = when === 'before' ? 1 : 2;
      if (when === 'before') dataSource.subscribers.push(subscriber);
      const service = world.service({ strategy: 'row', dataSource });
      await (await service.acquire('k')).release();
      if (when === 'after') dataSource.subscribers.push(subscriber);
      await service.withLock('k', (lock) => rowManager(lock).save(Sale, { id }));
      expect(insertedIds).toEqual([id]);
    },
  );
});
