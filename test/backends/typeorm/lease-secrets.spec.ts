import { Deadline, type LockBackend } from 'nestjs-distributed-lock/core';
import { inspect } from 'node:util';
import { failureOf, timeLimitOf } from '../../support/index.js';
import { describeServers } from './sql-world.js';

const OWNER = 'canary-owner-0123456789';
const PASSWORD = 'canary-password';

/** In every way in which a driver writes a value into a statement. */
const SECRETS = [OWNER, PASSWORD, Buffer.from(OWNER).toString('hex'), Buffer.from(PASSWORD).toString('hex')];

const SETUP = {
  postgres: [
    `create role spy login password '${PASSWORD}'`,
    `grant select, insert, update on distributed_lock to spy`,
    `create table strict (check (owner is null), like distributed_lock including all)`,
    `insert into strict values ('k', null, 1, now(), now())`,
    `grant select, insert, update on strict to spy`,
    `create table narrow as select * from distributed_lock where 1 = 0`,
  ],
  mariadb: [
    `create user spy identified by '${PASSWORD}'`,
    `create table strict like distributed_lock`,
    `alter table strict add constraint nobody check (owner is null)`,
    `insert into strict values ('k', null, 1, now(), now(), null)`,
    `grant select, insert, update on test.distributed_lock to spy`,
    `grant select, insert, update on test.strict to spy`,
    `grant select on test.* to spy`,
    `create table narrow as select * from distributed_lock where 1 = 0`,
  ],
};

describeServers('secrets', (world, type) => {
  beforeAll(async () => {
    for (const statement of SETUP[type]) await world.ask(statement);
  });

  const asSpy = (password = PASSWORD) => world.urlOf({ username: 'spy', password, port: world.proxy.port });
  const ask = (backend: LockBackend) =>
    backend.acquire('k', {
      owner: OWNER,
      ttlMs: 1_000,
      deadline: Deadline.after(0),
      metadata: { host: 'h', pid: 1 },
    });

  const FAULTS: Readonly<Record<string, () => Promise<unknown>>> = {
    'a row that the server refuses': async () =>
      failureOf(ask(world.service({ url: asSpy(), synchronize: false, tableName: 'strict' }).backend)),
    'a table of another shape': async () =>
      failureOf(ask(world.service({ url: asSpy(), synchronize: false, tableName: 'narrow' }).backend)),
    'a user that does not exist': async () =>
      failureOf(ask(world.service({ url: world.urlOf({ username: 'nobody', password: PASSWORD }) }).backend)),
    'a server that is silent': async () => {
      const { backend } = world.service({ url: asSpy(), synchronize: false, requestTimeoutMs: timeLimitOf(500) });
      await (await ask(backend))?.release();
      world.proxy.pause();
      return failureOf(ask(backend));
    },
    'a connection that breaks': async () => {
      const { backend } = world.service({ url: asSpy(), synchronize: false });
      await (await ask(backend))?.release();
      world.proxy.refuse();
      world.proxy.reset();
      const error = await failureOf(ask(backend));
      await world.proxy.accept();
      return error;
    },
  };

  it.each(Object.keys(FAULTS))('are in no error and no health report: %s', async (name) => {
    const error = await FAULTS[name]?.();
    const shown = inspect(error, { depth: Infinity, showHidden: true });
    expect(shown).toMatch(/code: 'LOCK_/u);
    for (const secret of SECRETS) expect(shown).not.toContain(secret);
  });
});
