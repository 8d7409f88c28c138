import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** One piece sold. A buyer gets one piece of a sale, so asking again after a lost answer finds the same order. */
@Entity('purchase')
export class Order {
  @PrimaryGeneratedColumn()
  id!: number;

  @Column('integer', { name: 'sale_id' })
  saleId!: number;

  @Column('varchar', { length: 100 })
  buyer!: string;

  /** Of the lock it was sold under: grows from order to order. Text, because it is larger than what a JSON number keeps. */
  @Column('varchar', { name: 'fencing_token', length: 20, nullable: true })
  fencingToken!: string | null;
}
