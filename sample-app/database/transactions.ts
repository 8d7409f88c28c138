import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, QueryFailedError } from 'typeorm';

const BUSY_PAUSE_MS = 5;
const PATIENCE_MS = 10_000;

/**
 * One transaction after the other. TypeORM has a single connection to a SQLite file, and a transaction begun while another
 * one is open would become a savepoint *inside* of it: a stranger's rollback would undo it. Databases with a pool of
 * connections need no such thing.
 */
@Injectable()
export class Transactions {
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly dataSource: DataSource) {}

  run<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    const result = this.#last.then(() => this.#untilNotBusy(work));
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Another process may be writing the file: nothing of ours happened then, and it is tried again. */
  async #untilNotBusy<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    const giveUpAt = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.dataSource.transaction(work);
      } catch (error) {
        if (!isBusy(error) || performance.now() >= giveUpAt) throw error;
        await pause(BUSY_PAUSE_MS);
      }
    }
  }
}

function isBusy(error: unknown): boolean {
  if (!(error instanceof QueryFailedError)) return false;
  const driverError: unknown = error.driverError;
  return (
    driverError instanceof Error && 'code' in driverError && /^SQLITE_(BUSY|LOCKED)/u.test(String(driverError.code))
  );
}
