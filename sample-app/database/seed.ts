import type { DataSource } from 'typeorm';

/** The flash sale with its pieces, and the one that the restock job fills up. Leaves what is there alone. */
export async function seed(dataSource: DataSource, stock: number): Promise<void> {
  await dataSource.query('insert into sale (id, pieces, stock) values (42, ?1, ?1), (7, 5, 5) on conflict do nothing', [
    stock,
  ]);
}
