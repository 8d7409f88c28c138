import { lockIn } from 'nestjs-distributed-lock/sql';
import { serve } from '../../support/serve.js';
import { type DatabaseName, openConnection } from './databases.js';

/** A process that takes the next number of a list, again and again, each in a transaction that has the list's key. */
const api = {
  async takeNumbers({ name, url, count }: { name: DatabaseName; url: string; count: number }): Promise<void> {
    const connection = await openConnection(name, url);
    for (let taken = 0; taken < count; taken += 1) {
      await connection.begin();
      await lockIn(connection.tx, 'numbers');
      await connection.ask('insert into numbers select coalesce(max(n), 0) + 1 from numbers');
      await connection.ask('commit');
    }
    await connection.end();
  },
};

export type LockInApi = typeof api;

serve(api);
