import { Column, Entity, PrimaryColumn, VersionColumn } from 'typeorm';

@Entity()
export class Sale {
  @PrimaryColumn('integer')
  id!: number;

  /** Number of pieces that the sale had at first. */
  @Column('integer')
  pieces!: number;

  /** Number of pieces that are left. */
  @Column('integer')
  stock!: number;

  /** Number of changes. Sellers without a lock compare it. */
  @VersionColumn()
  version!: number;
}
