import { Column, Entity, PrimaryColumn, VersionColumn } from 'typeorm';

@Entity()
export class Stock {
  @PrimaryColumn('integer')
  id!: number;

  @Column('integer')
  remaining!: number;

  @VersionColumn()
  version!: number;
}

@Entity()
export class Unversioned {
  @PrimaryColumn('integer')
  id!: number;

  @Column('integer')
  remaining!: number;
}
