import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** One piece sold. A buyer gets one piece of a sale: a repeated request finds the same order. */
@Entity('purchase')
export class Order {
  @PrimaryGeneratedColumn()
  id!: number;

  @Column('integer', { name: 'sale_id' })
  saleId!: number;

  @Column('varchar', { length: 100 })
  buyer!: string;

  /** Fencing token of the lock under which the piece was sold. A text, because a JSON number is too small for it. */
  @Column('varchar', { name: 'fencing_token', length: 20, nullable: true })
  fencingToken!: string | null;
}
