import { Injectable } from '@nestjs/common';
import type { LockHandle } from 'nestjs-distributed-lock';
import { fenced, rowManager } from 'nestjs-distributed-lock/typeorm';
import { Transactions, type Work } from '../../sample-app/database/transactions.js';

/** Writes the sale in the transaction of the row lock, which is committed when the locked method has succeeded. */
@Injectable()
export class RowTransactions extends Transactions {
  override runFenced<T>(resource: string, lock: LockHandle, work: Work<T>): Promise<T> {
    return fenced(rowManager(lock), resource, lock, work);
  }
}
