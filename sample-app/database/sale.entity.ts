import { Column, Entity, PrimaryColumn, VersionColumn } from 'typeorm';

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

  /** Counts the changes. Those who sell without a lock compare it. */
  @VersionColumn()
  version!: number;
}
