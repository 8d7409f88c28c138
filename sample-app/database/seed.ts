import type { EntityManager } from 'typeorm';
import { Sale } from './sale.entity.js';

/** The flash sale with its pieces, and the empty one that the restock job fills up. Leaves what is there alone. */
export async function seed(manager: EntityManager, stock: number): Promise<void> {
  const sales = [
    { id: 42, pieces: stock, stock },
    { id: 7, pieces: 0, stock: 0 },
  ];
  await manager.createQueryBuilder().insert().into(Sale).values(sales).orIgnore().execute();
}
