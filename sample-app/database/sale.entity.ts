import { Column, Entity, PrimaryColumn, VersionColumn } from 'typeorm';

@Entity()
export class Sale {
  @PrimaryColumn('integer')
  id!: number;

  /** Number of pieces that were ever for sale. */
  @Column('integer')
  pieces!: number;

  /** Number of pieces that are left. */
  @Column('integer')
  stock!: number;

  /** Number of changes, which sellers without a lock compare. */
  @VersionColumn()
  version!: number;
}
