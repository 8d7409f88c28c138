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

  /** The token of the lock it was sold under: grows from order to order. Text, because a JSON number is too small. */
  @Column('varchar', { name: 'fencing_token', length: 20, nullable: true })
  fencingToken!: string | null;
}
