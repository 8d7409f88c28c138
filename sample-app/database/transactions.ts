import { Inject, Injectable } from '@nestjs/common';
import type { LockHandle } from 'nestjs-distributed-lock';
import { fenced, optimistic, rowManager } from 'nestjs-distributed-lock/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { SETTINGS, type Settings } from '../settings.js';

/** Many seconds: a process may be stopped while it has the write lock of a SQLite file, and hundreds want the same row. */
const RETRIES = 100;

type Work<T> = (manager: EntityManager) => Promise<T>;

/**
 * All reads and writes of the sale. TypeORM has a single connection to a SQLite file, and a transaction begun while another one
 * is open would become a savepoint *inside* of it: a stranger's rollback would undo it. `optimistic` has them take turns there,
 * and tries those again that another process was in the way of.
 */
@Injectable()
export class Transactions {
  constructor(
    private readonly dataSource: DataSource,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  run<T>(work: Work<T>): Promise<T> {
    return optimistic(this.dataSource, work, { retries: RETRIES });
  }

  /**
   * A transaction that no former holder of the lock can commit. A row lock comes with a transaction: where the sale is in the
   * same database, `work` is a part of that one, which is committed when the locked method has succeeded.
   * @throws StaleFenceError somebody else has the lock by now
   */
  runFenced<T>(resource: string, lock: LockHandle, work: Work<T>): Promise<T> {
    const { server, saleDb } = this.settings;
    const inFence: Work<T> = (manager) => fenced(manager, resource, lock, work);
    const isRowLock = lock.attachment !== undefined;
    return isRowLock && server === saleDb ? inFence(rowManager(lock)) : this.run(inFence);
  }
}
