import { setImmediate } from 'node:timers/promises';
import { createPool } from 'mysql2';
import { isLockError, LockService, runDetached } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
import { Pool } from 'pg';

import { Gate } from '../../support/index.js';
import { describeServers, type SqlType } from './sql-world.js';

/** A pool of one connection that calls back in the context of whoever gave its connection back. */
interface CallbackPool {
  take(callback: (release: () => void) => void): void;
  end(): Promise<unknown>;
}

const POOLS: Readonly<Record<SqlType, (url: string) => CallbackPool>> = {
  postgres(url) {
    const pool = new Pool({ connectionString: url, max: 1 });
    return { take: (callback) => pool.connect((_error, _client, done) => callback(done)), end: () => pool.end() };
  },
  mariadb(url) {
    const pool = createPool({ uri: url, connectionLimit: 1 });
    const take: CallbackPool['take'] = (callback) =>
      pool.getConnection((_error, connection) => callback(() => connection.release()));
    return { take, end: () => pool.promise().end() };
  },
};

describeServers('a callback pool whose connection is given back under a lock', (world, type) => {
  it.each(['as it is', 'in runDetached'])('lets no stranger into that lock, %s', async (way) => {
    const pool = POOLS[type](world.url);
    await using locks = new LockService(memory());
    const outcomes: unknown[] = [];
    const [taken, asked, served] = [new Gate(), new Gate(), new Gate()];
    let isInside = false;
    const holder = locks.withLock('stock', async () => {
      isInside = true;
      const release = await new Promise<() => void>((resolve) => pool.take(resolve));
      taken.open();
      await asked.opened;
      release();
      for (let step = 0; step < 20; step += 1) await setImmediate();
      isInside = false;
    });
    await taken.opened;
    pool.take((release) => {
      const job = () => locks.withLock('stock', () => void outcomes.push(isInside ? 'two inside' : 'alone'));
      const outcome = way === 'as it is' ? job() : runDetached(job);
      void outcome.catch((error: unknown) => outcomes.push(error)).finally(() => (release(), served.open()));
    });
    asked.open();
    await Promise.all([holder, served.opened]);
    await pool.end();
    const [outcome] = outcomes;
    if (way === 'as it is' && outcome !== 'alone') expect(isLockError(outcome, 'LOCK_DEADLOCK')).toBe(true);
    else expect(outcomes).toEqual(['alone']);
  });
});
