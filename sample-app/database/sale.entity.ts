import { Column, Entity, PrimaryColumn } from 'typeorm';

@Entity()
export class Sale {
  @PrimaryColumn('integer')
  id!: number;

  /** How many there were to sell. */
  @Column('integer')
  pieces!: number;

  /** How many are left. */
  @Column('integer')
  stock!: number;
}
