import { Module, type Type } from '@nestjs/common';
import { type BackendFactory, DistributedLockModule } from 'nestjs-distributed-lock';
import { etcd } from 'nestjs-distributed-lock/etcd';
import { memcached } from 'nestjs-distributed-lock/memcached';
import { redis } from 'nestjs-distributed-lock/redis';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { zookeeper } from 'nestjs-distributed-lock/zookeeper';
import * as Database from 'libsql';
import { DataSource } from 'typeorm';
import { SalesController } from './sales.controller';

const { env } = process;

const postgres = new DataSource({ type: 'postgres', url: env['POSTGRES_URL'] ?? '' });
const sqlite = new DataSource({ type: 'better-sqlite3', driver: Database, database: env['SQLITE_FILE'] ?? '' });

/** A root module for each backend, with the locks in its metadata: one for all applications of the process. */
export const APP_MODULES: readonly (readonly [string, Type])[] = [
  ['Redis', appModule(redis({ url: env['REDIS_URL'] ?? '' }))],
  ['PostgreSQL', appModule(typeorm({ dataSource: postgres, synchronize: true }))],
  ['ZooKeeper', appModule(zookeeper({ connectString: env['ZOOKEEPER_ADDRESS'] ?? '' }))],
  ['memcached', appModule(memcached({ servers: env['MEMCACHED_ADDRESS'] ?? '' }))],
  ['etcd', appModule(etcd({ endpoints: (env['ETCD_URLS'] ?? '').split(',') }))],
  ['SQLite', appModule(typeorm({ dataSource: sqlite, synchronize: true }))],
];

function appModule(backend: BackendFactory): Type {
  @Module({ imports: [DistributedLockModule.forRoot(backend)], controllers: [SalesController] })
  class AppModule {}
  return AppModule;
}
