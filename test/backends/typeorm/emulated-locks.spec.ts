import { Client } from 'pg';
import { LockService } from 'nestjs-distributed-lock/core';
import { postgres } from 'nestjs-distributed-lock/postgres';
import { fromPg, lockIn } from 'nestjs-distributed-lock/sql';

import { describeWanted, failureOf } from '../../support/index.js';
import { SqlWorld } from './sql-world.js';

/** What databases have that speak PostgreSQL's protocol, and only know the names of its locks. */
const NAMES = ['try_advisory_lock', 'try_advisory_xact_lock', 'advisory_xact_lock', 'advisory_unlock'];

describeWanted(['postgres'], 'S16: a database whose advisory locks do nothing, %s', (type) => {
  const world = SqlWorld.shared(type);
  const emulate = async (answer: string): Promise<void> => {
    await world.ask(
      `alter database ${new URL(world.url).pathname.slice(1)} set search_path = emulated, public, pg_catalog`,
    );
    await world.ask('create schema if not exists emulated');
    for (const name of NAMES) {
      await world.ask(`drop function if exists emulated.pg_${name}(bigint)`);
      await world.ask(`create function emulated.pg_${name}(bigint) returns boolean language sql as 'select ${answer}'`);
    }
  };

  it.each(['true', 'null::boolean'])('is refused by strategy session: %s', async (answer) => {
    await emulate(answer);
    await using locks = new LockService(postgres({ url: world.url, strategy: 'session', synchronize: true }));
    expect(await failureOf(locks.tryAcquire('k'))).toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'strategy' });
  });

  it('is refused by lockIn where it answers with nothing', async () => {
    await emulate('null::boolean');
    const client = new Client({ connectionString: world.url });
    await client.connect();
    await client.query('begin');
    await expect(lockIn(fromPg(client), 'k')).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'tx' });
    await client.end();
  });
});
