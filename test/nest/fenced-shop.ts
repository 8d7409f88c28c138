import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FactoryProvider, INestApplicationContext, Provider } from '@nestjs/common';
import { CreateDistributedLock1760000000000, fenced } from 'nestjs-distributed-lock/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { context, inMemory } from './apps.js';
import type { Crossing } from './crossing.js';

const libsql: unknown = createRequire(import.meta.url)('libsql');

/** A SQLite file with a stock of 10 in each of the sales 1 to 9, and the tables of the fence. */
export class FencedShop {
  #directory = '';
  #dataSource: DataSource | undefined;

  constructor() {
    beforeAll(async () => {
      this.#directory = mkdtempSync(join(tmpdir(), 'fenced-shop-'));
      this.#dataSource = await new DataSource({
        type: 'better-sqlite3',
        driver: libsql,
        database: join(this.#directory, 'shop.sqlite'),
        migrations: [CreateDistributedLock1760000000000],
        migrationsRun: true,
      }).initialize();
      await this.dataSource.query('create table sale (id integer primary key, stock integer not null)');
    });
    beforeEach(async () => {
      await this.dataSource.query('delete from sale');
      await this.dataSource.query('delete from distributed_lock_fence');
      for (let id = 1; id < 10; id += 1) await this.dataSource.query('insert into sale values (?, 10)', [id]);
    });
    afterAll(async () => {
      await this.#dataSource?.destroy();
      rmSync(this.#directory, { recursive: true });
    });
  }

  get dataSource(): DataSource {
    if (!this.#dataSource) throw new Error('the shop has not opened');
    return this.#dataSource;
  }

  get provider(): FactoryProvider<DataSource> {
    return { provide: DataSource, useFactory: () => this.dataSource };
  }

  /** An application with these providers, the data source and locks in memory. */
  app(observer: Crossing, ...providers: Provider[]): Promise<INestApplicationContext> {
    return context({ imports: [inMemory(observer)], providers: [this.provider, ...providers] });
  }

  async stock(id = 1): Promise<number> {
    return Number((await this.dataSource.query('select stock from sale where id = ?', [id]))[0]?.stock);
  }

  /** The resources that have a fence. */
  async fences(): Promise<string[]> {
    const rows: { resource: string }[] = await this.dataSource.query('select resource from distributed_lock_fence');
    return rows.map(({ resource }) => resource).toSorted();
  }

  /** As the holder of a lock that is newer than every other one. */
  async overtake(resource: string): Promise<void> {
    await fenced(this.dataSource.manager, resource, { fencingToken: 2n ** 62n }, async () => undefined);
  }
}

export async function sellOne(manager: EntityManager, id: number | string = 1): Promise<string> {
  await manager.query('update sale set stock = stock - 1 where id = ?', [id]);
  return `sold ${id}`;
}
