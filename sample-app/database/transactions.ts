import { Injectable } from '@nestjs/common';
import type { LockHandle } from 'nestjs-distributed-lock';
import { fenced, optimistic } from 'nestjs-distributed-lock/typeorm';
import { DataSource, type EntityManager } from 'typeorm';

/** Number of retries, which last for many seconds: a process may freeze while it has the write lock of the SQLite file. */
const MAX_RETRIES = 100;

export type Work<T> = (manager: EntityManager) => Promise<T>;

/** Runs all reads and writes of the sale. */
@Injectable()
export class Transactions {
  constructor(private readonly dataSource: DataSource) {}

  /** Runs `work` in a transaction, and again when it conflicts with that of another process. */
  run<T>(work: Work<T>): Promise<T> {
    return optimistic(this.dataSource, work, { retries: MAX_RETRIES });
  }

  /**
   * Runs `work` in a transaction that no former holder of the lock can commit.
   * @throws StaleFenceError when another holder has the lock by now
   */
  runFenced<T>(resource: string, lock: LockHandle, work: Work<T>): Promise<T> {
    return this.run((manager) => fenced(manager, resource, lock, work));
  }
}
